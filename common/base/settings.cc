#include "common/base/settings.h"

#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "common/base/suggestion.h"

namespace loopfleet {
namespace {

std::string EnvironmentName(std::string_view prefix, std::string_view option) {
  std::string name(prefix);
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::optional<std::string> TextOf(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

// The value as a list of one, or the values of an array. nullopt for anything else.
std::optional<std::vector<std::string>> TextsOf(const toml::node& node) {
  const auto* array = node.as_array();
  if (array == nullptr) {
    const auto text = TextOf(node);
    if (!text) return std::nullopt;
    return std::vector{*text};
  }
  std::vector<std::string> texts;
  for (const toml::node& item : *array) {
    const auto text = TextOf(item);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  return texts;
}

// Whether the environment and the file may set it.
bool IsSetting(const CLI::Option* option) {
  return !option->get_lnames().empty() && option->get_lnames()[0] != "help" &&
         option->get_lnames()[0] != "version" && option->get_lnames()[0] != "config";
}

// Variables of this prefix that are not meant as a daemon's settings.
bool IsOfOthers(std::string_view variable, std::string_view prefix) {
  // Kubernetes sets these for a service of the daemon's name.
  const std::string_view name = variable.substr(prefix.size() - 1);  // "_PORT_5570_TCP"
  const bool is_of_kubernetes = name.find("_SERVICE_") != std::string_view::npos ||
                                name.find("_PORT_") != std::string_view::npos ||
                                name.ends_with("_PORT");
  // For `loopfleet fleet slurm`, from `loopfleet local`.
  return is_of_kubernetes || variable == "LOOPFLEET_WORKER_ADDRESS";
}

Status SetOption(CLI::Option& option, const std::vector<std::string>& values,
                 const std::string& source) {
  try {
    option.add_result(values);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    return Fail(ErrorKind::kInvalid, fmt::format("{}: {}", source, error.what()));
  }
  return {};
}

Result<toml::table> ReadTable(const std::string& file, std::string_view table) {
  try {
    toml::table whole = toml::parse_file(file);
    toml::node* found = whole.get(table);
    if (found == nullptr) return toml::table{};
    if (found->is_table()) return std::move(*found->as_table());
    return Fail(ErrorKind::kInvalid, fmt::format("{}:{}: '{}' must be a table: [{}]", file,
                                                 found->source().begin.line, table, table));
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) {  // the file could not be read
      return Fail(ErrorKind::kInvalid, fmt::format("{}: {}", file, error.description()));
    }
    return Fail(ErrorKind::kInvalid,
                fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
}

}  // namespace

std::string UsageText(const CLI::App& app, const CLI::ParseError& error) {
  std::string problem = error.what();
  if (const auto left = app.remaining(); !left.empty()) {
    const std::string word = left.front().substr(0, left.front().find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    problem = fmt::format("unknown {} '{}'{}", word.starts_with("-") ? "flag" : "argument", word,
                          NearestSuffix(word, candidates));
  }
  return fmt::format("{}: {}\nSee `{} --help`.\n", app.get_name(), problem, app.get_name());
}

std::vector<std::string> UnknownVariables(const CLI::App& app, std::string_view prefix) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options(&IsSetting)) {
    names.push_back(EnvironmentName("", option->get_lnames()[0]));
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view variable = text.substr(0, text.find('='));
    if (!variable.starts_with(prefix) || IsOfOthers(variable, prefix)) continue;
    const std::string_view name = variable.substr(prefix.size());
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto nearest = Nearest(name, known);
    unknown.push_back(fmt::format("{} is no setting{}", Quoted(variable),
                                  nearest ? fmt::format("; nearest: {}{}", prefix, *nearest) : ""));
  }
  return unknown;
}

Status ApplySettings(CLI::App& app, const SettingsSource& source) {
  const auto& [table, environment_prefix, file] = source;
  toml::table settings;
  if (file) {
    LF_TRY(settings, ReadTable(*file, table));
  }
  std::vector<std::string_view> known;
  const auto options = app.get_options(&IsSetting);
  for (const CLI::Option* option : options) known.push_back(option->get_lnames()[0]);
  for (const auto& [key, node] : settings) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{}:{}: unknown key '{}' in [{}]{}", *file, node.source().begin.line,
                              key.str(), table, NearestSuffix(key.str(), known)));
    }
  }
  for (CLI::Option* option : options) {
    if (option->count() > 0) continue;  // a flag was given
    const std::string& name = option->get_lnames()[0];
    const std::string variable = EnvironmentName(environment_prefix, name);
    if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0') {
      LF_TRY_VOID(SetOption(*option, {value}, "environment variable " + variable));
      continue;
    }
    const toml::node* node = settings.get(name);
    if (node == nullptr) continue;
    const auto values = TextsOf(*node);
    if (!values) {
      return Fail(ErrorKind::kInvalid,
                  fmt::format("{}:{}: '{}' is neither a value nor a list of values", *file,
                              node->source().begin.line, name));
    }
    LF_TRY_VOID(
        SetOption(*option, *values, fmt::format("{}:{}", *file, node->source().begin.line)));
  }
  return {};
}

}  // namespace loopfleet
