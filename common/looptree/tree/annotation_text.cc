#include "common/looptree/tree/annotation_text.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace loopfleet::looptree {
namespace {

constexpr std::size_t kFirstWord = static_cast<std::size_t>(Annotation::kVectorize) + 1;
constexpr std::size_t kMostWords = 60'000;

struct Words {
  std::mutex mutex;
  std::deque<std::string> all;  // by number, from kFirstWord on; never moved
  std::map<std::string_view, std::size_t> numbers;
};

Words& TheWords() {
  static Words& words = *new Words;  // outlives whatever prints a tree
  return words;
}

bool CanStandInText(std::string_view word) {
  return std::ranges::all_of(
      word, [](unsigned char c) { return c >= ' ' && c != 0x7f && c != ',' && c != ':'; });
}

}  // namespace

std::string_view AnnotationText(Annotation annotation) {
  switch (annotation) {
    case Annotation::kNone: return "";
    case Annotation::kThread: return "cpu_parallel";
    case Annotation::kUnroll: return "unroll";
    case Annotation::kVectorize: return "vectorize";
  }
  Words& words = TheWords();
  const std::lock_guard lock(words.mutex);
  return words.all.at(static_cast<std::size_t>(annotation) - kFirstWord);
}

std::optional<Annotation> ParseAnnotation(std::string_view text) {
  for (const Annotation annotation :
       {Annotation::kNone, Annotation::kThread, Annotation::kUnroll, Annotation::kVectorize}) {
    if (AnnotationText(annotation) == text) return annotation;
  }
  if (text == "thread") return Annotation::kThread;
  return std::nullopt;
}

std::optional<Annotation> AnnotationOfWord(std::string_view word) {
  if (const auto known = ParseAnnotation(word)) return known;
  if (word == "parallel") return Annotation::kThread;
  if (!CanStandInText(word)) return std::nullopt;
  Words& words = TheWords();
  const std::lock_guard lock(words.mutex);
  auto number = words.numbers.find(word);
  if (number == words.numbers.end()) {
    if (words.all.size() == kMostWords) return std::nullopt;
    words.all.emplace_back(word);
    number = words.numbers.emplace(words.all.back(), words.all.size() - 1).first;
  }
  return static_cast<Annotation>(kFirstWord + number->second);
}

}  // namespace loopfleet::looptree
