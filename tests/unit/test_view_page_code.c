/**
 * The page's script as a file holds it: each rewriting of page_code.c, page_short.c and page_names.c against
 * what it must become, and the whole script against what a reader of it can count. That it still runs is
 * tested in a browser: tools/deep/page.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "view/page_code.h"
#include "view/page_words.h"

static void test_shorter(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        { "const a=1;const b=2;", "const a=1,b=2;" },
        { "const a=()=>{const c=1;const d=2;f();const e=3;};const b=2;",
          "const a=()=>{const c=1,d=2;f();const e=3;},b=2;" },
        { "let a=1;const b=2;", "let a=1;const b=2;" },
        { "f();const b=2;const{c,d}=e;const[g]=h;", "f();const b=2,{c,d}=e,[g]=h;" },
        { "for(const x of y)f(x);const b=2;", "for(const x of y)f(x);const b=2;" },
        { "const a=\";const b\";const c=';const \\'d';", "const a=\";const b\",c=';const \\'d';" },
        { "return true;", "return!0;" },
        { "f(true,false)?\"true\":untrue.false", "f(!0,!1)?\"true\":untrue.false" },
        { "x={true:false}", "x={true:!1}" },
        { "const a=`${b};const c`;constant=1;", "const a=`${b};const c`;constant=1;" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_bytes code = { 0 };
        qkvi_script_shorten(&code, cases[i][0], cases[i][0] + strlen(cases[i][0]));
        qkvi_bytes_add(&code, "", 1);
        assert_string_equal((char *)code.data, cases[i][1]);
        qkvi_bytes_free(&code);
    }
}

static char *renamed(const char *script) {
    qkvi_bytes code = { 0 };
    qkvi_script_rename(&code, NULL, script, script + strlen(script));
    assert_false(code.failed);
    qkvi_bytes_add(&code, "", 1);
    return (char *)code.data;
}

/* Names are given by uses, then by place; a name that the script holds is not given. */
static void test_names(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        { "const total=1;f(total);", "const a=1;f(a);" },
        { "let first=1,second=g(first,2),third;f(second);", "let a=1,b=g(a,2),c;f(b);" },
        { "function run(value,more=value){return value+more}run(1)",
          "function b(a,c=a){return a+c}b(1)" },
        { "const sum=(one,two)=>one+two;", "const c=(a,b)=>a+b;" },
        { "const same=value=>value;", "const b=a=>a;" },
        { "for(const entry of list)f(entry)", "for(const a of list)f(a)" },
        { "try{f()}catch(problem){g(problem)}", "try{f()}catch(a){g(a)}" },
        /* what is not a variable */
        { "const total=1;f(x.total,x?.total);", "const a=1;f(x.total,x?.total);" },
        { "const total=1;f(...total,total);", "const a=1;f(...a,a);" },
        { "const total=1;f({total:total,x:[total]});", "const a=1;f({total:a,x:[a]});" },
        { "const total=1;f({total(){return total}},total);",
          "const a=1;f({total(){return a}},a);" },
        { "const total=1;f(total?total:2);", "const a=1;f(a?a:2);" },
        { "const total=1;f(\"total\",'total',/total[/]total/,total);",
          "const a=1;f(\"total\",'total',/total[/]total/,a);" },
        { "const total=1;f(total/2,total/3);", "const a=1;f(a/2,a/3);" },
        { "window.total=1;f(window.total,untold,untold);",
          "window.total=1;f(window.total,untold,untold);" },
        /* what an object or a pattern says once for both */
        { "const total=1;f({total,x:1},total,total);", "const a=1;f({total:a,x:1},a,a);" },
        { "const{total,rest:other=3,third=4}=x;f(total,total,other,third,third);",
          "const{total:a,rest:b=3,third:c=4}=x;f(a,a,b,c,c);" },
        { "const[first,second]=x;f(first,second);", "const[a,b]=x;f(a,b);" },
        { "f(({width,height})=>width*height*width*height)", "f(({width:a,height:b})=>a*b*a*b)" },
        { "const to=1;f({to});", "const to=1;f({to});" },
        /* templates are code between ${ and } */
        { "const total=1;f(`total ${total} ${g({x:total})} total`);",
          "const a=1;f(`total ${a} ${g({x:a})} total`);" },
        { "const first=x=>`${x}, ${x};`,second=2;f(first,second,second);",
          "const b=x=>`${x}, ${x};`,a=2;f(b,a,a);" },
        /* what is there already */
        { "const total=1,a=2;f(total,a,b);", "const c=1,a=2;f(c,a,b);" },
        { "const twice=1;{const twice=2;f(twice)}f(twice);", "const a=1;{const a=2;f(a)}f(a);" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *const got = renamed(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
        free(got);
    }
}

/* After 54 names of one character come those of two, but for words of the language. */
static void test_many_names(void **state) {
    (void)state;
    enum { MANY = 2000 };
    static char script[MANY * 40];
    size_t n = 0;
    for (int i = 0; i < MANY; i++)
        n += (size_t)snprintf(script + n, sizeof script - n, "const name%d=f(name%d);", i, i);
    qkvi_bytes code = { 0 }, lines = { 0 };
    qkvi_script_rename(&code, &lines, script, script + n);
    qkvi_bytes_add(&lines, "", 1);
    static char seen[MANY][4];
    const char *line = (const char *)lines.data;
    for (int i = 0, place, used; i < MANY; i++, line += used + 1) {
        assert_int_equal(sscanf(line, "name%d %3s%n", &place, seen[i], &used), 2);
        assert_int_equal(place, i);
        assert_false(qkvi_script_reserved(seen[i], (int)strlen(seen[i])));
        for (int j = 0; j < i; j++) assert_string_not_equal(seen[i], seen[j]);
    }
    assert_int_equal(strlen(seen[52]), 1); /* f is taken */
    assert_int_equal(strlen(seen[53]), 2);
    qkvi_bytes_free(&code);
    qkvi_bytes_free(&lines);
}

/* Brackets that do not close are no script of ours. */
static void test_broken(void **state) {
    (void)state;
    static const char *const cases[] = { "f(", "`${", "const{a" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_bytes code = { 0 };
        qkvi_script_rename(&code, NULL, cases[i], cases[i] + strlen(cases[i]));
        assert_true(code.failed);
        qkvi_bytes_free(&code);
    }
}

/* Most names are shorter, and none that the script means the browser's by. */
static void test_whole_script(void **state) {
    (void)state;
    static const char *const theirs[] = { "window",      "document",  "location",   "history",
                                          "navigator",   "print",     "setTimeout", "performance",
                                          "matchMedia",  "atob",      "URL",        "Blob",
                                          "innerWidth",  "Map",       "Set",        "Math",
                                          "innerHeight", "undefined", "Infinity",   "Image" };
    qkvi_page_code code;
    qkvi_page_code_make(&code);
    assert_false(code.script.failed || code.names.failed);
    qkvi_bytes_add(&code.names, "", 1);
    int n = 0;
    for (const char *line = (char *)code.names.data; *line; line = strchr(line, '\n') + 1, n++)
        for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
            if (strcspn(line, " ") == strlen(theirs[i]))
                assert_memory_not_equal(line, theirs[i], strlen(theirs[i]));
    assert_true(n > 300);
    qkvi_page_code_free(&code);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorter),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_many_names),   cmocka_unit_test(test_broken),
        cmocka_unit_test(test_whole_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
