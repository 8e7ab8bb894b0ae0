/*
 * The resources of qkv.exe: a manifest, by which variables of the environment are UTF-8 and paths
 * may have more than 260 characters. Microsoft's "PE Format", The .rsrc Section: a tree of types,
 * names and languages, whose places count from its root.
 */
    .macro directory id, place
    .long 0, 0, 0
    .short 0, 1 /* entries by name, by number */
    .long \id, \place
    .endm

    .section .rsrc, "dr"
root:
    directory 24, 0x80000000 + names - root /* RT_MANIFEST */
names:
    directory 1, 0x80000000 + languages - root /* of a program */
languages:
    directory 0x409, data - root
data:
    .rva manifest
    .long manifest_end - manifest, 65001, 0
manifest:
    .incbin "cli/os_windows.manifest"
manifest_end:
