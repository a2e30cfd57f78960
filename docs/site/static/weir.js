// Code and tables that are wider than their place scroll: the keyboard reaches them, too.
(() => {
    const mark = () => {
        for (const element of document.querySelectorAll("pre, .table-wrapper")) {
            if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
            else element.removeAttribute("tabindex");
        }
    };
    addEventListener("load", mark);
    addEventListener("resize", mark);
})();
