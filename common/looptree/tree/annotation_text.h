#pragma once
// The names of annotations in tree text and IR text.

#include <optional>
#include <string_view>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

std::string_view AnnotationText(Annotation annotation);

// Of those with an effect; "thread" is "cpu_parallel".
std::optional<Annotation> ParseAnnotation(std::string_view text);

// The same, "parallel" is "cpu_parallel", or the word itself: one number for each word, kept as
// long as the process, so not for text that strangers send. nullopt: it has a ',' or a ':' or what
// is no printable character, or there are 60,000 words. Safe from any thread.
std::optional<Annotation> AnnotationOfWord(std::string_view word);

}  // namespace loopfleet::looptree
