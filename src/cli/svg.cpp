#include "cli/svg.h"

#include <fmt/format.h>

#include "base/text.h"

namespace twinkle::cli {
namespace {

constexpr std::string_view style =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".ground{fill:#ffffff}.head{font-size:16px;font-weight:600}.part{font-size:13px;"
    "font-weight:600}.soft{fill:#59636e}.faster{fill:#116329;font-weight:600}"
    ".slower{fill:#b3261e;font-weight:600}.grid{stroke:#d8dee4}.axis{stroke:#818b98}"
    ".whisker{stroke:#1f2328;stroke-width:1.5}.original{fill:#8c959f}.kernelized{fill:#0969da}"
    ".link{stroke:#afb8c1;stroke-width:3}.from{fill:#ffffff;stroke:#59636e;stroke-width:2}"
    ".good{fill:#2da44e}.bad{fill:#cf222e}.odd{fill:#d4a72c}.track{fill:#eaeef2}"
    ".bound{stroke:#1f2328;stroke-width:2}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}.soft{fill:#9198a1}"
    ".faster{fill:#57d364}.slower{fill:#ff8078}.grid{stroke:#2a313c}.axis{stroke:#6e7681}"
    ".whisker{stroke:#e6edf3}.original{fill:#7d8590}.kernelized{fill:#388bfd}"
    ".link{stroke:#484f58}.from{fill:#0d1117;stroke:#b1bac4}"
    ".good{fill:#3fb950}.bad{fill:#f85149}.odd{fill:#d29922}.track{fill:#21262d}"
    ".bound{stroke:#e6edf3}}";

std::string_view anchor_name(Svg::Anchor anchor) {
    return anchor == Svg::Anchor::end ? "end" : anchor == Svg::Anchor::middle ? "middle" : "start";
}

}  // namespace

std::string_view drawing_style() {
    return style;
}

std::string xml_text(std::string_view text) {
    std::string result;
    for (const char c : base::printable(text)) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            default: result += c;
        }
    }
    // U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML.
    for (const std::string_view outside : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
        for (auto at = result.find(outside); at != std::string::npos; at = result.find(outside)) {
            result.replace(at, outside.size(), "\xEF\xBF\xBD");
        }
    }
    return result;
}

void Svg::text(double x, double y, std::string_view text, std::string_view look, Anchor anchor) {
    if (text.empty()) {
        return;
    }
    body_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                    x, y, look, anchor_name(anchor), xml_text(text));
}

void Svg::box(double x, double y, double width, double height, std::string_view look) {
    body_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"{}\"/>\n", x, y,
        width, height, look);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view look) {
    body_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
        x2, y2, look);
}

void Svg::dot(double x, double y, double radius, std::string_view look) {
    body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>\n", x, y,
                         radius, look);
}

void Svg::begin_group(std::string_view title) {
    body_ += "<g><title>" + xml_text(title) + "</title>\n";
}

void Svg::end_group() {
    body_ += "</g>\n";
}

std::string Svg::document(double height, std::string_view title,
                          std::string_view description) const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
               "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
               "<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n"
               "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" class=\"ground\"/>\n",
               width_, height, xml_text(title), xml_text(description), style) +
           body_ + "</svg>\n";
}

std::string Svg::part(double height, std::string_view title) const {
    return fmt::format(
        "<svg class=\"part\" viewBox=\"0 0 {0:.0f} {1:.0f}\" height=\"{1:.0f}\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{2}\">{3}</svg>",
        width_, height, xml_text(title), body_);
}

}  // namespace twinkle::cli
