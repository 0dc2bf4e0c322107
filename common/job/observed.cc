#include "common/job/observed.h"

namespace loopfleet {
namespace {

struct ValueBytes {
  std::size_t operator()(double) const { return sizeof(double); }
  std::size_t operator()(const std::vector<double>& numbers) const {
    return numbers.size() * sizeof(double);
  }
  std::size_t operator()(const std::string& text) const { return text.size(); }
  std::size_t operator()(const Blob& blob) const { return blob.sha256.size() + sizeof(blob.bytes); }
};

}  // namespace

std::size_t BytesOf(const Observed& observed) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : observed.values) {
    bytes += name.size() + std::visit(ValueBytes{}, value);
  }
  return bytes;
}

}  // namespace loopfleet
