#include "kernel/outside_functions.h"

#include <cmath>
#include <cstring>

namespace loopfleet {
namespace {

template <class Function>
std::uint64_t AddressOf(Function* function) {
  return reinterpret_cast<std::uint64_t>(function);
}

using Unary = float(float);
using Binary = float(float, float);

}  // namespace

const OutsideFunctions& OutsideFunctions::OfThisProcess() {
  static const OutsideFunctions functions{
      .addresses = {AddressOf<Unary>(&::expf), AddressOf<Unary>(&::logf),
                    AddressOf<Unary>(&::sqrtf), AddressOf<Unary>(&::tanhf),
                    AddressOf<Unary>(&::erff), AddressOf<Unary>(&::sinf), AddressOf<Unary>(&::cosf),
                    AddressOf<Binary>(&::powf), AddressOf(&std::memcpy), AddressOf(&std::memset)}};
  return functions;
}

std::optional<std::uint64_t> OutsideFunctions::Find(std::string_view name) const {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return addresses[i];
  }
  return std::nullopt;
}

}  // namespace loopfleet
