#include "client/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <utility>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/completion_words.h"
#include "client/cli/exit_code.h"

namespace loopfleet::client {
namespace {

struct Choice {
  std::string word;             // a command, or a flag with its dashes
  std::string text;             // description
  CompletionWords values = {};  // of a flag that takes one of these
};

// What may follow at one position of the grammar.
struct Place {
  std::string path;  // " worker list"; "" at the root
  std::vector<Choice> commands;
  std::vector<Choice> flags;
  std::vector<CompletionWords> arguments;
};

// CLI11 states a choice as the type: "TEXT:{cpu,cuda}".
CompletionWords ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return WordsFor(option);
  return {.words = CLI::detail::split(type.substr(begin + 1, end - begin - 1), ','), .command = {}};
}

void AddPlaces(const CLI::App& app, const std::string& path, std::vector<Place>& places) {
  Place place{.path = path};
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) {
    place.commands.push_back({command->get_name(), command->get_description()});
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      place.flags.push_back({"--" + name, option->get_description(), ValuesOf(*option)});
    }
    if (!option->get_positional()) continue;
    if (CompletionWords words = ValuesOf(*option); !words.empty()) {
      place.arguments.push_back(std::move(words));
    }
  }
  places.push_back(std::move(place));
  for (const CLI::App* command : commands) {
    AddPlaces(*command, path + " " + command->get_name(), places);
  }
}

// Escapes text for single quotes in any of the shells.
std::string Quoted(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c == '\n' ? ' ' : c;
    }
  }
  return quoted;
}

// The paths of all places, as patterns of a `case`.
std::string Paths(const std::vector<Place>& places, std::string_view separator) {
  std::vector<std::string> paths;
  for (const Place& place : places) {
    if (!place.path.empty()) paths.push_back(fmt::format("'{}'", place.path));
  }
  return fmt::format("{}", fmt::join(paths, separator));
}

// compgen runs the command, as it expands its words.
std::string BashWords(const CompletionWords& values) {
  const std::string command = values.command.empty() ? "" : fmt::format(" $({})", values.command);
  return fmt::format("COMPREPLY+=($(compgen -W '{}{}' -- \"$current\"))",
                     fmt::join(values.words, " "), command);
}

// Completes what stands behind the last comma.
std::string BashList(const CompletionWords& values) {
  return fmt::format(
      "COMPREPLY+=($(compgen -P \"${{current%\"${{current##*,}}\"}}\" -W '{}' -- "
      "\"${{current##*,}}\")); compopt -o nospace 2>/dev/null",
      fmt::join(values.words, " "));
}

std::string Bash(const std::vector<Place>& places) {
  std::string script =
      "# bash completion for loopfleet; made by `loopfleet completion bash`\n"
      "_loopfleet() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} at='' word\n"
      "  COMPREPLY=()\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n";
  script +=
      fmt::format("    case \"$at $word\" in\n      {}) at=\"$at $word\" ;;\n    esac\n  done\n",
                  Paths(places, "|"));
  script += "  case \"$at ${COMP_WORDS[COMP_CWORD-1]}\" in\n";
  for (const Place& place : places) {
    for (const Choice& flag : place.flags) {
      if (flag.values.empty()) continue;
      script += fmt::format("    '{} {}') {}; return ;;\n", place.path, flag.word,
                            flag.values.is_list ? BashList(flag.values) : BashWords(flag.values));
    }
  }
  script += "  esac\n  case \"$at\" in\n";
  for (const Place& place : places) {
    std::vector<std::string> words;
    for (const Choice& choice : place.commands) words.push_back(choice.word);
    for (const Choice& choice : place.flags) words.push_back(choice.word);
    script += fmt::format("    '{}') COMPREPLY=($(compgen -W '{}' -- \"$current\"))", place.path,
                          fmt::join(words, " "));
    for (const CompletionWords& argument : place.arguments) {
      script += fmt::format("\n      [[ $current == -* ]] || {}", BashWords(argument));
    }
    script += " ;;\n";
  }
  return script + "  esac\n}\ncomplete -o default -F _loopfleet loopfleet\n";
}

std::string ZshWords(const CompletionWords& values) {
  return values.command.empty()
             ? fmt::format("{}", fmt::join(values.words, " "))
             : fmt::format("{} ${{(f)\"$({})\"}}", fmt::join(values.words, " "), values.command);
}

std::string Zsh(const std::vector<Place>& places) {
  std::string script =
      "#compdef loopfleet\n"
      "# zsh completion for loopfleet; made by `loopfleet completion zsh`\n"
      "_loopfleet() {\n"
      "  local at='' word\n"
      "  local -a choices\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n";
  script +=
      fmt::format("    case \"$at $word\" in\n      ({}) at=\"$at $word\" ;;\n    esac\n  done\n",
                  Paths(places, "|"));
  script += "  case \"$at\" in\n";
  const auto add = [&](const Choice& choice) {
    std::string text = Quoted(choice.text);
    script += fmt::format("        '{}:{}'\n", choice.word, text);
  };
  for (const Place& place : places) {
    script += fmt::format("    ('{}') choices=(\n", place.path);
    for (const Choice& choice : place.commands) add(choice);
    for (const Choice& choice : place.flags) add(choice);
    script += "      ) ;;\n";
  }
  script += "  esac\n  [[ $words[CURRENT] == -* ]] || case \"$at\" in\n";
  for (const Place& place : places) {
    for (const CompletionWords& argument : place.arguments) {
      script += fmt::format("    ('{}') choices+=({}) ;;\n", place.path, ZshWords(argument));
    }
  }
  script += "  esac\n  case \"$at $words[CURRENT-1]\" in\n";
  for (const Place& place : places) {
    for (const Choice& flag : place.flags) {
      if (flag.values.empty()) continue;
      script += fmt::format("    ('{} {}') {}choices=({}) ;;\n", place.path, flag.word,
                            flag.values.is_list ? "compset -P '*,' 2>/dev/null; " : "",
                            ZshWords(flag.values));
    }
  }
  return script +
         "  esac\n"
         "  _describe 'loopfleet' choices || _files\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _loopfleet ]; then\n  _loopfleet \"$@\"\nelif (( "
         "$+functions[compdef] )); then\n"
         "  compdef _loopfleet loopfleet\nfi\n";
}

std::string FishWords(const CompletionWords& values) {
  const std::string words = fmt::format("{}", fmt::join(values.words, " "));
  if (values.is_list) return fmt::format("(__loopfleet_list {})", words);
  return values.command.empty() ? words : fmt::format("{} ({})", words, values.command);
}

std::string Fish(const std::vector<Place>& places) {
  std::string script =
      "# fish completion for loopfleet; made by `loopfleet completion fish`\n"
      "function __loopfleet_at\n"
      "    set -l at ''\n"
      "    set -l words (commandline -opc)\n"
      "    for word in $words[2..-1]\n"
      "        switch \"$at $word\"\n";
  script += fmt::format("            case {}\n                set at \"$at $word\"\n",
                        Paths(places, " "));
  script += "        end\n    end\n    test \"$at\" = \"$argv[1]\"\nend\n";
  script +=
      "function __loopfleet_list\n"
      "    set -l before (string match -r '^.*,' -- (commandline -ct))\n"
      "    for word in $argv\n"
      "        echo \"$before$word\"\n"
      "    end\nend\n";
  for (const Place& place : places) {
    for (const Choice& choice : place.commands) {
      script += fmt::format("complete -c loopfleet -f -n '__loopfleet_at \"{}\"' -a {} -d '{}'\n",
                            place.path, choice.word, Quoted(choice.text));
    }
    for (const Choice& choice : place.flags) {
      const std::string values =
          choice.values.empty() ? "" : fmt::format(" -x -a '{}'", FishWords(choice.values));
      script += fmt::format("complete -c loopfleet -n '__loopfleet_at \"{}\"' -l {}{} -d '{}'\n",
                            place.path, choice.word.substr(2), values, Quoted(choice.text));
    }
    for (const CompletionWords& argument : place.arguments) {
      script += fmt::format("complete -c loopfleet -f -n '__loopfleet_at \"{}\"' -a '{}'\n",
                            place.path, FishWords(argument));
    }
  }
  return script;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, Shell shell) {
  std::vector<Place> places;
  AddPlaces(app, "", places);
  switch (shell) {
    case Shell::kBash: return Bash(places);
    case Shell::kZsh: return Zsh(places);
    case Shell::kFish: return Fish(places);
  }
  return "";
}

void AddCompletionCommands(CommandLine& line) {
  CLI::App& noun = line.AddNoun(
      {.name = "completion",
       .description = "Print what lets a shell complete this command (no cluster)",
       .examples = "source <(loopfleet completion bash)\n"
                   "loopfleet completion fish > ~/.config/fish/completions/loopfleet.fish"});
  const auto add = [&](const char* name, Shell shell) {
    line.AddCommand(noun,
                    {.name = name, .description = fmt::format("For {}", name), .examples = {}},
                    CommandLine::Talks::kOffline, [&line, shell](const CommandRun&) {
                      fmt::print("{}", CompletionScript(line.root(), shell));
                      return kExitOk;
                    });
  };
  add("bash", Shell::kBash);
  add("zsh", Shell::kZsh);
  add("fish", Shell::kFish);
}

}  // namespace loopfleet::client
