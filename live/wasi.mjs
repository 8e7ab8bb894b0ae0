/*
 * The system of a module: what of WASI (preview 1) the engine calls, over files that are given to it and only
 * read. A file is a Uint8Array, or a Blob, of which a worker reads what is asked for. No clock of the day, no
 * network, no random numbers; what it prints is lost.
 */
const ENOSYS = 52, EBADF = 8, ENOENT = 44, EINVAL = 28, EROFS = 69, ENOTDIR = 54;
const FOLDER = 3, FILE = 4, ROOT = 3;  // kinds, and the descriptor that paths start from

/* "./a//b/" → "a/b" */
const plain = path => path.split("/").filter(part => part && part !== ".").join("/");

/* Bytes of a file from an offset on. */
function slice(content, from, n) {
    if (content instanceof Uint8Array) return content.subarray(from, from + n);
    return new Uint8Array(new FileReaderSync().readAsArrayBuffer(content.slice(from, from + n)));
}
const sizeOf = content => content.size ?? content.length;

/* files: Map of paths; memory(): the memory of the module, once there is one. */
export function wasi(files, memory) {
    const open = new Map([[ROOT, {path: "", at: 0}]]);  // descriptors
    let next = ROOT + 1;
    const view = () => new DataView(memory().buffer);
    const bytes = (at, n) => new Uint8Array(memory().buffer, at, n);
    const textAt = (at, n) => new TextDecoder().decode(bytes(at, n));
    const isFolder = path => path === "" || [...files.keys()].some(f => f.startsWith(path + "/"));
    const kindOf = path => files.has(path) ? FILE : isFolder(path) ? FOLDER : 0;
    const pathOf = (fd, at, n) => plain(`${open.get(fd).path}/${textAt(at, n)}`);
    const names = path => {
        const begin = path && path + "/";
        return [...new Set([...files.keys()]
                               .filter(f => f.startsWith(begin))
                               .map(f => f.slice(begin.length).split("/")[0]))];
    };
    const inode = path => BigInt([...files.keys()].indexOf(path) + 2);

    function fill(path, at) {  // a filestat
        const kind = kindOf(path), v = view();
        if (!kind) return ENOENT;
        bytes(at, 64).fill(0);
        v.setBigUint64(at + 8, inode(path), true);
        v.setUint8(at + 16, kind);
        v.setBigUint64(at + 24, 1n, true);
        v.setBigUint64(at + 32, BigInt(kind === FILE ? sizeOf(files.get(path)) : 0), true);
        return 0;
    }
    function read(fd, list, n, offset, done) {
        const file = open.get(fd), content = file && files.get(file.path);
        if (!content) return EBADF;
        let from = offset ?? file.at, all = 0;
        for (let i = 0; i < n; i++) {
            const at = view().getUint32(list + 8 * i, true),
                  room = view().getUint32(list + 8 * i + 4, true);
            const got = slice(content, from, room);
            bytes(at, got.length).set(got);
            from += got.length;
            all += got.length;
            if (got.length < room) break;
        }
        if (offset === undefined) file.at = from;
        view().setUint32(done, all, true);
        return 0;
    }

    const calls = {
        clock_time_get(_id, _precision, at) {
            view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
            return 0;
        },
        environ_sizes_get(n, size) {
            view().setUint32(n, 0, true);
            view().setUint32(size, 0, true);
            return 0;
        },
        environ_get: () => 0,
        sched_yield: () => 0,
        proc_exit(code) { throw new Error(`the engine has ended with ${code}`); },
        fd_write(_fd, list, n, done) {
            let all = 0;
            for (let i = 0; i < n; i++) all += view().getUint32(list + 8 * i + 4, true);
            view().setUint32(done, all, true);
            return 0;
        },
        fd_prestat_get(fd, at) {
            if (fd !== ROOT) return EBADF;
            view().setUint32(at, 0, true);
            view().setUint32(at + 4, 1, true);  // bytes of "/"
            return 0;
        },
        fd_prestat_dir_name(_fd, at) {
            bytes(at, 1)[0] = 47;
            return 0;
        },
        fd_fdstat_get(fd, at) {
            const file = open.get(fd);
            if (!file) return EBADF;
            bytes(at, 24).fill(0);
            view().setUint8(at, kindOf(file.path));
            view().setBigUint64(at + 8, ~0n, true);  // rights
            view().setBigUint64(at + 16, ~0n, true);
            return 0;
        },
        fd_fdstat_set_flags: () => 0,
        path_open(fd, _follow, at, n, how, _rights, _inherited, _flags, opened) {
            const path = pathOf(fd, at, n), kind = kindOf(path), CREATE = 1, DIRECTORY = 2;
            if (how & CREATE) return EROFS;
            if (!kind) return ENOENT;
            if (how & DIRECTORY && kind !== FOLDER) return ENOTDIR;
            open.set(next, {path, at: 0});
            view().setUint32(opened, next++, true);
            return 0;
        },
        fd_close: fd => open.delete(fd) ? 0 : EBADF,
        fd_read: (fd, list, n, done) => read(fd, list, n, undefined, done),
        fd_pread: (fd, list, n, offset, done) => read(fd, list, n, Number(offset), done),
        fd_seek(fd, offset, whence, at) {
            const file = open.get(fd), content = file && files.get(file.path);
            if (!content) return EBADF;
            const to = [0, file.at, sizeOf(content)][whence] + Number(offset);
            if (!(to >= 0)) return EINVAL;
            file.at = to;
            view().setBigUint64(at, BigInt(to), true);
            return 0;
        },
        fd_filestat_get: (fd, at) => open.has(fd) ? fill(open.get(fd).path, at) : EBADF,
        path_filestat_get: (fd, _follow, at, n, to) => fill(pathOf(fd, at, n), to),
        path_readlink: () => EINVAL,
        fd_readdir(fd, at, room, cookie, done) {
            const {path} = open.get(fd), list = names(path), ENTRY = 24;
            let used = 0;
            for (let i = Number(cookie); i < list.length && used < room; i++) {
                const own = plain(`${path}/${list[i]}`), name = new TextEncoder().encode(list[i]),
                      entry = new Uint8Array(ENTRY + name.length), v = new DataView(entry.buffer);
                v.setBigUint64(0, BigInt(i + 1), true);
                v.setBigUint64(8, inode(own), true);
                v.setUint32(16, name.length, true);
                v.setUint8(20, kindOf(own));
                entry.set(name, ENTRY);
                const part = entry.subarray(0, room - used);
                bytes(at + used, part.length).set(part);
                used += part.length;
            }
            view().setUint32(done, used, true);
            return 0;
        },
    };
    return name => calls[name] ?? (() => ENOSYS);
}
