/** The page's own files: src/page/web, placed into the library by files.S. */
#ifndef QKVI_PAGE_FILES_H
#define QKVI_PAGE_FILES_H

extern const char qkvi_page_style[], qkvi_page_style_end[]; /* style.css */
extern const char qkvi_page_shell[],
    qkvi_page_shell_end[]; /* shell.html: what <body> begins with */
extern const char qkvi_page_script[], qkvi_page_script_end[]; /* all *.js, one after the other */

#endif
