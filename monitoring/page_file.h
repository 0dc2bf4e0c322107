#pragma once
// The files of the web page, as they are built in (monitoring/page). Compressed: every browser
// takes gzip, and nobody else asks for them.

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
