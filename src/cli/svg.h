#pragma once
// A drawing as SVG text: self-contained, without scripts, readable on light and dark backgrounds.
// `look` is a class of drawing_style().

#include <string>
#include <string_view>

namespace twinkle::cli {

// Escapes text from outside for XML: characters that XML cannot hold, such as controls, become
// visible.
std::string xml_text(std::string_view text);

// The style sheet of all drawings: of those that stand alone, and of pages that hold some.
std::string_view drawing_style();

class Svg {
public:
    enum class Anchor { start, middle, end };

    explicit Svg(double width) : width_(width) {}

    void text(double x, double y, std::string_view text, std::string_view look = "",
              Anchor anchor = Anchor::start);
    void box(double x, double y, double width, double height, std::string_view look);
    void line(double x1, double y1, double x2, double y2, std::string_view look);
    void dot(double x, double y, double radius, std::string_view look);
    // Everything drawn until end_group() shows `title` as its tooltip.
    void begin_group(std::string_view title);
    void end_group();

    double width() const { return width_; }

    // The document; title and description are for users who cannot see it.
    std::string document(double height, std::string_view title, std::string_view description) const;
    // A part of a page, without text of its own, stretched to the width that it gets there.
    std::string part(double height, std::string_view title) const;

private:
    double width_;
    std::string body_;
};

}  // namespace twinkle::cli
