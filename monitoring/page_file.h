#pragma once
// The files of the web page, built into the binary (monitoring/page). Always gzip-compressed: only
// browsers request them, and all of them accept it.

#include <span>
#include <string_view>

namespace loopfleet::monitoring {

struct PageFile {
  std::string_view path;  // "/page.js"
  std::string_view content_type;
  std::string_view gzip;  // its bytes
};

std::span<const PageFile> PageFiles();  // none: built without the page

}  // namespace loopfleet::monitoring
