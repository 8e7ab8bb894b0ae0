export interface Model { source: string; architecture: string; most: number; isa: string; mask: string | null; texts: boolean; images: boolean }
export interface Words { n: number; words: [begin: number, end: number, state: 0 | 1 | 2 | 3][] }
export class Engine {
    static start(module: WebAssembly.Module, files?: Map<string, Uint8Array | Blob>): Promise<Engine>;
    open(name: string): Model;
    openFiles(files: Uint8Array[]): Model;
    words(text: string): Words;
    look(text: string): any;
    page(text: string, maps?: boolean): Uint8Array;
    both(text: string): {page: Uint8Array; seen: any};
    lookImage(name: string, bytes: Uint8Array | Blob): any;
    pageImage(name: string, bytes: Uint8Array | Blob, maps?: boolean): Uint8Array;
    bothOfImage(name: string, bytes: Uint8Array | Blob): {page: Uint8Array; seen: any};
}
export interface Loaded { engine: Engine; module: WebAssembly.Module; name: "relaxed" | "exact"; model: Model; reasons: string[] }
export function load(): Promise<Loaded>;
export function start(files: Map<string, Uint8Array | Blob>): Promise<Engine>;
