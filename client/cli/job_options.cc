#include "client/cli/job_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "client/job_line.h"
#include "client/json_line.h"
#include "common/base/enum_names.h"
#include "common/job/job_fields.h"

namespace loopfleet::client {
namespace {

using Json = nlohmann::ordered_json;

std::string OptionName(std::string_view field) {
  std::string name = fmt::format("--{}", field);
  std::ranges::replace(name, '_', '-');
  return name;
}

// By the unit that the field's name ends with.
std::string TypeName(std::string_view field, std::string_view otherwise) {
  for (const std::string_view unit : {"MS", "NS", "S"}) {
    std::string suffix = fmt::format("_{}", unit);
    std::ranges::transform(suffix, suffix.begin(), [](char c) { return std::tolower(c); });
    if (field.ends_with(suffix)) return std::string(unit);
  }
  return std::string(otherwise);
}

template <class E>
std::vector<std::string> Names() {
  const auto names = AllNames<E>();
  return {names.begin(), names.end()};
}

// Adds one option, by the type of its field.
class OptionAdder {
 public:
  OptionAdder(CLI::App& app, Json& fields) : app_(app), fields_(fields) {}

  template <class T>
  void operator()(const JobField& field, const T& when_unset) const {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Freshness>) {
      app_.add_flag_callback(
          OptionName(field.name), [fields = &fields_, field] { (*fields)[field.name] = true; },
          std::string(field.help));
    } else if constexpr (std::is_enum_v<T>) {
      Add<std::string>(field, fmt::format("{} (default {})", field.help, EnumName(when_unset)))
          ->check(CLI::IsMember(Names<T>()));
    } else if constexpr (std::is_same_v<T, std::optional<looptree::Dialect>>) {
      Add<std::string>(field)->check(CLI::IsMember(Names<looptree::Dialect>()));
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      // --passes '' gives none, as --actions '' does.
      app_.add_option_function<T>(
              OptionName(field.name),
              [fields = &fields_, field](T given) {
                std::erase(given, "");
                (*fields)[field.name] = std::move(given);
              },
              std::string(field.help))
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("A,B,C");
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (field.name == kTagField) {
        AddJson(field);
      } else {
        Add<std::string>(field)->type_name("TEXT");
      }
    } else {
      std::string help(field.help);
      if (when_unset != T{}) help += fmt::format(" (default {})", when_unset);
      Add<T>(field, help)->type_name(TypeName(field.name, std::integral<T> ? "N" : "SHARE"));
    }
  }

 private:
  void AddJson(const JobField& field) const {
    app_.add_option_function<std::string>(
            OptionName(field.name),
            [fields = &fields_, field](const std::string& given) {
              auto value = ParseJsonLine(given, {.nesting = kMaxTagNesting});
              if (!value) {
                throw CLI::ValidationError(
                    OptionName(field.name),
                    fmt::format("{}; a text needs quotes: '\"text\"'", value.error()));
              }
              (*fields)[field.name] = *std::move(value);
            },
            std::string(field.help))
        ->type_name("JSON");
  }

  template <class T>
  CLI::Option* Add(const JobField& field, std::string help = {}) const {
    return app_.add_option_function<T>(
        OptionName(field.name),
        [fields = &fields_, field](const T& given) { (*fields)[field.name] = given; },
        help.empty() ? std::string(field.help) : help);
  }

  CLI::App& app_;
  Json& fields_;
};

}  // namespace

void AddJobOptions(CLI::App& app, Json& fields) {
  const JobSpec defaults;
  ForEachField(OptionAdder(app, fields), defaults);
}

}  // namespace loopfleet::client
