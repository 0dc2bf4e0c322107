#include "common/wire/codec/submission_digest.h"

#include <capnp/message.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "common/job/job_fields.h"
#include "common/wire/codec/codec.h"
#include "common/wire/codec/job_codec.h"

namespace loopfleet::wire {
namespace {

constexpr char kFieldsMark = 'f';  // makes the length odd, unlike a ContentDigest

// The wire number of each action, which never changes, by its index in the variant, which may.
using ActionNumbers = std::array<std::uint8_t, std::variant_size_v<looptree::Action>>;
template <std::size_t... I>
ActionNumbers MakeActionNumbers(std::index_sequence<I...>) {
  const std::vector<looptree::Action> actions = {
      std::variant_alternative_t<I, looptree::Action>{}...};
  capnp::MallocMessageBuilder builder;
  auto list = builder.initRoot<schema::JobSpec>().initActions(sizeof...(I));
  WriteActions(actions, list, 0);
  return {static_cast<std::uint8_t>(list[I].which())...};
}

// A field is its tag and its value. A field with its default value is left out, so a new field does
// not change the digests of submissions that do not use it.
class ContentText {
 public:
  void Clear() { bytes_.clear(); }
  std::string_view bytes() const { return bytes_; }

  template <class T>
  void Field(std::uint8_t tag, const T& value, const T& when_unset) {
    if (value == when_unset) return;
    Append(tag);
    Append(value);
  }
  void Field(std::uint8_t tag, const std::string& text, const std::string& /*when_unset*/) {
    if (!text.empty()) Item(tag, text);
  }
  void Field(std::uint8_t tag, const std::vector<std::string>& texts,
             const std::vector<std::string>& /*when_unset*/) {
    for (const std::string& text : texts) Item(tag, text);
  }
  template <class T>
  void Field(std::uint8_t tag, const std::optional<T>& value,
             const std::optional<T>& /*when_unset*/) {
    if (!value) return;
    Append(tag);
    Append(*value);
  }
  void Text(const std::string& text) {
    Append(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T>
  void Append(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof raw);
  }

 private:
  void Item(std::uint8_t tag, const std::string& text) {
    Append(tag);
    Text(text);
  }

  std::string bytes_;
};

void AppendActions(const std::vector<looptree::Action>& actions, ContentText& content) {
  static const ActionNumbers kNumbers =
      MakeActionNumbers(std::make_index_sequence<std::variant_size_v<looptree::Action>>{});
  content.Append(static_cast<std::uint32_t>(actions.size()));
  for (const looptree::Action& action : actions) {
    content.Append(kNumbers[action.index()]);
    if (const auto* split = std::get_if<looptree::Split>(&action)) {
      content.Append(split->factor);
    }
  }
}

void AppendJob(const JobSpec& job, ContentText& content) {
  static const JobSpec kUnset{};
  content.Append(std::holds_alternative<looptree::IrText>(job.source) ? std::uint8_t{2}
                                                                      : std::uint8_t{1});
  content.Text(
      std::visit([](const auto& kind) -> const std::string& { return kind.text; }, job.source));
  AppendActions(job.actions, content);
  ForEachField([&](const JobField& field, const auto& value,
                   const auto& when_unset) { content.Field(field.number, value, when_unset); },
               job, kUnset);
}

std::string OfFields(const SubmitJobs& submit) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  ContentText content;
  content.Append(submit.append_to ? submit.append_to->value : std::uint64_t{0});
  content.Append(submit.end == BatchEnd::kMoreFollows);
  content.Append(static_cast<std::uint32_t>(submit.jobs.size()));
  XXH3_128bits_update(state.get(), content.bytes().data(), content.bytes().size());
  for (const JobSpec& job : submit.jobs) {
    content.Clear();
    AppendJob(job, content);
    content.Append(std::uint8_t{0});  // tag 0: the job ends
    XXH3_128bits_update(state.get(), content.bytes().data(), content.bytes().size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{}{:016x}{:016x}", kFieldsMark, hash.high64, hash.low64);
}

}  // namespace

std::string SubmissionDigest(const SubmitJobs& submit) { return OfFields(submit); }

std::string SubmissionDigestOfSameKind(std::string_view kept, const SubmitJobs& submit) {
  return kept.starts_with(kFieldsMark) && kept.size() % 2 == 1 ? OfFields(submit)
                                                               : ContentDigest(submit);
}

}  // namespace loopfleet::wire
