#include "cli/html_page.h"

#include <fmt/format.h>

#include "cli/svg.h"

namespace twinkle::cli {
namespace {

constexpr std::string_view page_style =
    R"(:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--ground:#fff;--card:#f6f8fa;
--edge:#d1d9e0;--good:#1a7f37;--odd:#9a6700;--bad:#cf222e;--link:#0969da}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--ground:#0d1117;--card:#151b23;
--edge:#3d444d;--good:#3fb950;--odd:#d29922;--bad:#f85149;--link:#4493f8}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1120px;padding:24px 20px 64px;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}
h1{font-size:24px;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:17px;margin:36px 0 10px}
p{margin:4px 0}
.soft{color:var(--soft)}.mono,code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.mono,code,.where{overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(240px,1fr));gap:12px;margin:20px 0}
.tile{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:14px 16px}
.tile .big{font-size:26px;font-weight:600;line-height:1.2}
.tile .part{margin:8px 0 6px}
svg.part{display:block;width:100%;border-radius:2px}
svg.part *{vector-effect:non-scaling-stroke}
details>summary{list-style:none;cursor:pointer}
details>summary::-webkit-details-marker{display:none}
.site{border:1px solid var(--edge);border-left-width:5px;border-radius:6px;margin:6px 0}
.site>summary{padding:8px 12px}.site>summary:hover{background:var(--card)}
.site[open]>summary{border-bottom:1px solid var(--edge);background:var(--card)}
.inside{padding:10px 12px}
.replaced{border-left-color:var(--good)}.kept{border-left-color:var(--odd)}
.reverted{border-left-color:var(--bad)}
.row{display:grid;grid-template-columns:minmax(0,5fr) minmax(0,3fr) minmax(0,4fr);gap:4px 20px;align-items:center}
.name{font-weight:600;overflow-wrap:anywhere}.small{font-size:13px;line-height:1.4}
.status{display:inline-block;border-radius:10px;padding:0 8px;font-size:12px;font-weight:600;
border:1px solid currentColor;white-space:nowrap}
.status.replaced{color:var(--good)}.status.kept{color:var(--odd)}.status.reverted{color:var(--bad)}
.faster{color:var(--good);font-weight:600}.slower{color:var(--bad);font-weight:600}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:2px 16px;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin-top:10px}
table{border-collapse:collapse;font-size:13px;min-width:100%}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--edge);vertical-align:top}
th{color:var(--soft);font-weight:400}td.number,th.number{text-align:right;white-space:nowrap}
.tree,.tree ul{list-style:none;margin:0;padding:0}
.tree ul{margin-left:9px;padding-left:14px;border-left:1px solid var(--edge)}
.tree>ul{margin-left:0;padding-left:0;border-left:0}
.tree li{margin:1px 0}
.tree details>summary,.tree .leaf{padding:1px 6px;border-radius:4px;overflow-wrap:anywhere}
.tree details>summary:hover{background:var(--card)}
.tree details>summary::before{content:'▸';display:inline-block;width:14px;color:var(--soft)}
.tree details[open]>summary::before{content:'▾'}
.tree .leaf::before{content:'';display:inline-block;width:14px}
.tree .inside{margin:2px 0 6px 20px;padding:8px 12px;background:var(--card);border-radius:6px}
.key{display:inline-block;width:18px;height:10px;border-radius:2px;margin:0 5px 0 12px}
.key.before{background:#8c959f}.key.after{background:var(--link)}
.dot{display:inline-block;width:10px;height:10px;border-radius:5px;margin-right:7px}
.dot.replaced{background:var(--good)}.dot.kept{background:var(--odd)}.dot.reverted{background:var(--bad)}
.dot.none{background:none;border:1px solid var(--soft)}
ul.warnings{padding-left:20px}
@media(max-width:720px){body{padding:16px 12px 48px}.row{grid-template-columns:minmax(0,1fr)}
dl{grid-template-columns:minmax(0,1fr)}dd{margin-bottom:6px}.tree ul{margin-left:4px;padding-left:8px}
.tree>ul{margin-left:0;padding-left:0}}
)";

}  // namespace

std::string element(std::string_view tag, std::string_view look, std::string_view inner) {
    return look.empty() ? fmt::format("<{0}>{1}</{0}>", tag, inner)
                        : fmt::format("<{0} class=\"{2}\">{1}</{0}>", tag, inner, look);
}

std::string disclosure(std::string_view look, std::string_view summary, std::string_view inner,
                       bool open) {
    return fmt::format("<details class=\"{}\"{}><summary>{}</summary>{}</details>\n", look,
                       open ? " open" : "", summary, inner);
}

std::string facts_list(std::initializer_list<std::pair<std::string_view, std::string>> facts) {
    std::string text;
    for (const auto& [name, value] : facts) {
        if (!value.empty()) {
            text += element("dt", "", xml_text(name)) + element("dd", "", xml_text(value));
        }
    }
    return text.empty() ? "" : element("dl", "", text);
}

std::string html_page(std::string_view title, std::string_view body) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" "
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
        xml_text(title), drawing_style(), page_style, body);
}

}  // namespace twinkle::cli
