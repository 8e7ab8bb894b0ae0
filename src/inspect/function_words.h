/**
 * English function words: articles, pronouns, prepositions, auxiliaries and the like. Any other
 * word is a content word.
 *
 * Lower case, sorted for binary search (a test checks the order). The list has the halves of
 * contractions, too, which tokenizers split at the apostrophe: don ' t, she ' ll.
 */
#ifndef QKVI_INSPECT_FUNCTION_WORDS_H
#define QKVI_INSPECT_FUNCTION_WORDS_H

/* clang-format off */
static const char *const qkvi_function_words[] = {
    "a", "about", "above", "across", "after", "again", "against", "ain", "all", "almost", "along",
    "already", "also", "although", "always", "am", "among", "an", "and", "another", "any",
    "anybody", "anyone", "anything", "are", "aren", "around", "as", "at",
    "be", "because", "been", "before", "behind", "being", "below", "beneath", "beside", "besides",
    "between", "beyond", "both", "but", "by",
    "can", "cannot", "could", "couldn",
    "d", "despite", "did", "didn", "do", "does", "doesn", "doing", "don", "done", "down", "during",
    "each", "either", "else", "enough", "even", "ever", "every", "everybody", "everyone",
    "everything", "except",
    "few", "for", "from", "further",
    "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "hence", "her", "here", "hers",
    "herself", "him", "himself", "his", "how", "however",
    "i", "if", "in", "inside", "instead", "into", "is", "isn", "it", "its", "itself",
    "just",
    "least", "less", "like", "ll",
    "m", "many", "may", "maybe", "me", "might", "mightn", "mine", "more", "most", "much", "must",
    "mustn", "my", "myself",
    "near", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "now",
    "of", "off", "often", "on", "once", "one", "only", "onto", "or", "other", "others", "ought",
    "our", "ours", "ourselves", "out", "outside", "over", "own",
    "per", "perhaps", "quite", "rather", "re",
    "s", "same", "shall", "shan", "she", "should", "shouldn", "since", "so", "some", "somebody",
    "someone", "something", "sometimes", "still", "such",
    "t", "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there",
    "therefore", "these", "they", "this", "those", "though", "through", "throughout", "thus",
    "till", "to", "together", "too", "toward", "towards",
    "under", "underneath", "unless", "unlike", "until", "up", "upon", "us",
    "ve", "very", "via",
    "was", "wasn", "we", "were", "weren", "what", "whatever", "when", "whenever", "where",
    "whereas", "wherever", "whether", "which", "whichever", "while", "who", "whoever", "whom",
    "whose", "why", "will", "with", "within", "without", "won", "would", "wouldn",
    "yes", "yet", "you", "your", "yours", "yourself", "yourselves",
};
/* clang-format on */

#endif
