/*
 * Which keys a query sees by position: the only place where the page knows. manifest.rules has the rules of
 * the library that are set, each with its fields. Here each narrows [first, end) for query i, which is at place
 * `at` among the keys; an unknown one is an error. The test page_visible compares this with the library.
 */
const RULES = {
    causal: (keys, {at}, rule, {prefix}) => keys.end =
        min(keys.end, max(at + 1, prefix ? prefix.prefix_len : 0)),
    prefix: () => {},  // causal reads it
    window: (keys, {at}, {window_left, window_right}) => {
        if (window_left >= 0) keys.first = max(keys.first, at - window_left);
        if (window_right >= 0) keys.end = min(keys.end, at + window_right + 1);
    },
    chunk: (keys, {at}, {chunk}) => {
        const first = floor(at / chunk) * chunk;
        keys.first = max(keys.first, first);
        keys.end = min(keys.end, first + chunk);
    },
    kv_len: (keys, query, {kv_len}) => keys.end = min(keys.end, kv_len),
    q_len: (keys, {i}, {q_len}) => keys.first = i < q_len ? keys.first : Infinity,
    q_offset: () => {}  // offsetOf reads it
};
const offsetOf = rules => rules.q_offset ? rules.q_offset.q_offset : 0;

/* Of n keys those that query i sees: first <= j < end. Neither falls as i grows. */
function intervalOf(rules, n, i) {
    const keys = {first: 0, end: n}, query = {i, at: i + offsetOf(rules)};
    for (const name in rules) RULES[name](keys, query, rules[name], rules);
    const first = min(keys.first, n);
    return [first, max(first, min(keys.end, n))];
}
