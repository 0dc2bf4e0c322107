#include "storage/sqlite/result_index/result_hash.h"

#include <xxhash.h>

#include <string_view>

namespace loopfleet::storage {
namespace {

ResultHash HashOfConditions(std::string_view hardware_class, const CompilerFacts& compiler,
                            std::uint32_t threads, CacheState cache, std::string_view policy) {
  XXH64_hash_t hash = 0;
  const auto add = [&hash](std::string_view text) {
    hash = XXH3_64bits_withSeed(text.data(), text.size(), hash);
  };
  add(hardware_class);
  add(compiler.llvm);
  add(compiler.tier);
  add(compiler.revision);
  add(policy);
  const std::uint32_t numbers[] = {threads, static_cast<std::uint32_t>(cache)};
  return XXH3_64bits_withSeed(numbers, sizeof numbers, hash);
}

ResultHash HashOfConditions(const ResultKey& key) {
  return HashOfConditions(key.hardware_class, key.compiler, key.threads, key.cache, key.policy);
}

std::span<const std::uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

ResultHash HashOf(const ResultKey& key) { return HashOf(key.subject.bytes, HashOfConditions(key)); }

ResultHash HashOfCode(std::string_view code_hash, const ResultKey& key) {
  return HashOfCode(code_hash, HashOfConditions(key));
}

ResultHash HashOf(const SubjectKey& tree, const Conditions& conditions) {
  return HashOf(tree.bytes, HashOf(conditions));
}

ResultHash HashOf(const Conditions& conditions) {
  return HashOfConditions(conditions.hardware.hardware_class, conditions.compiler,
                          conditions.threads, conditions.cache, conditions.policy);
}

ResultHash HashOf(std::span<const std::uint8_t> tree, ResultHash conditions) {
  return XXH3_64bits_withSeed(tree.data(), tree.size(), conditions);
}

ResultHash HashOfCode(std::string_view code_hash, ResultHash conditions) {
  return HashOf(BytesOf(code_hash), conditions);
}

}  // namespace loopfleet::storage
