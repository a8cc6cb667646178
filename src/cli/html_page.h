#pragma once
// A page as HTML text: self-contained, without scripts and outside resources, readable on light and
// dark backgrounds and on narrow screens.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace twinkle::cli {

// "<tag class="look">inner</tag>"; `inner` is HTML, made from outside text by xml_text().
std::string element(std::string_view tag, std::string_view look, std::string_view inner);

// What opens on a click, without a script.
std::string disclosure(std::string_view look, std::string_view summary, std::string_view inner,
                       bool open = false);

// Names and values below each other; those without a value are left out.
std::string facts_list(std::initializer_list<std::pair<std::string_view, std::string>> facts);

// The document; `title` is text, `body` HTML.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace twinkle::cli
