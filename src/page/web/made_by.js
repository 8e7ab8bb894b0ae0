/* Of a page that another program made: Start names its call, and no view a command of qkv. */
{
    const {show} = tabs.start, {says} = tabs.map;
    tabs.start.show = panel => {
        show(panel);
        const end = panel.lastElementChild;
        end.textContent =
            end.textContent.replace(/(, which `qkv .*)?\.$/, ". Made by ") + manifest.made_by + ".";
    };
    tabs.map.says = () => says().replace(/: `qkv map .* makes one/, "");
}
