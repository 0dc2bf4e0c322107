#pragma once
// The names of annotations in tree text and IR text.

#include <optional>
#include <string_view>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

inline std::string_view AnnotationText(Annotation annotation) {
  switch (annotation) {
    case Annotation::kNone: return "";
    case Annotation::kThread: return "cpu_parallel";
    case Annotation::kUnroll: return "unroll";
    case Annotation::kVectorize: return "vectorize";
  }
  return "";
}

inline std::optional<Annotation> ParseAnnotation(std::string_view text) {
  for (const Annotation annotation :
       {Annotation::kNone, Annotation::kThread, Annotation::kUnroll, Annotation::kVectorize}) {
    if (AnnotationText(annotation) == text) return annotation;
  }
  if (text == "thread") return Annotation::kThread;
  return std::nullopt;
}

}  // namespace loopfleet::looptree
