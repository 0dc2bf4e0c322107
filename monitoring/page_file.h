#pragma once
// The files of the web page, built into the binary (monitoring/page): compressed, for browsers, and
// plain, for requests that do not accept gzip.

#include <span>
#include <string_view>

namespace loopfleet::monitoring {

struct PageFile {
  std::string_view path;  // "/page.js"
  std::string_view content_type;
  std::string_view gzip;
  std::string_view plain;
};

std::span<const PageFile> PageFiles();  // none: built without the page

}  // namespace loopfleet::monitoring
