/** The page's own files: src/view/page, placed into the library by page_files.S. */
#ifndef QKVI_VIEW_PAGE_FILES_H
#define QKVI_VIEW_PAGE_FILES_H

extern const char qkvi_page_style[], qkvi_page_style_end[]; /* style.css */
extern const char qkvi_page_shell[],
    qkvi_page_shell_end[]; /* shell.html: what <body> begins with */
extern const char qkvi_page_script[], qkvi_page_script_end[]; /* all *.js, one after the other */

#endif
