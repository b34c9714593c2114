#include "server/shell/completion.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "models/registry/registry.h"
#include "server/shell/completion_internal.h"
#include "server/shell/script.h"
#include "server/shell/shell_commands.h"
#include "server/shell/statement_help.h"

namespace sluice::server {
namespace {

// Files whose path begins with the typed text; folders end with a slash.
Completion CompleteFile(std::string_view path) {
  Completion completion;
  completion.replaced = path.size();
  const size_t slash = path.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
  const std::string_view start = path.substr(folder.size());
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.empty() ? "." : folder.c_str()),
                                                    &closedir);
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (!name.starts_with(start) || name == "." || name == ".." ||
        (start.empty() && name.starts_with('.'))) {
      continue;
    }
    struct stat info {};
    const bool is_folder = stat((folder + name).c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    completion.candidates.push_back(folder + name + (is_folder ? "/" : ""));
  }
  std::sort(completion.candidates.begin(), completion.candidates.end());
  const bool only_folder =
      completion.candidates.size() == 1 && completion.candidates.front().ends_with('/');
  completion.suffix = only_folder ? "" : " ";
  return completion;
}

Completion FromList(std::string_view word, const std::vector<std::string>& words) {
  Completion completion;
  completion.replaced = word.size();
  for (const std::string& candidate : words) {
    if (StartsInAnyCase(candidate, word)) {
      completion.candidates.push_back(candidate);
    }
  }
  std::sort(completion.candidates.begin(), completion.candidates.end());
  completion.candidates.erase(
      std::unique(completion.candidates.begin(), completion.candidates.end()),
      completion.candidates.end());
  return completion;
}

Completion CompleteCommand(std::string_view line,
                           const std::function<const CompletionNames&()>& names) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const size_t blank = line.find(' ');
  std::vector<std::string> words;
  if (blank == std::string_view::npos) {
    for (const ShellCommand& command : ShellCommands()) {
      words.emplace_back(command.name);
    }
    return FromList(line, words);
  }
  const std::string_view word = line.substr(line.rfind(' ') + 1);
  for (const ShellCommand& command : ShellCommands()) {
    if (command.name != line.substr(0, blank)) {
      continue;
    }
    // The second argument of .import.
    const bool second = command.name == ".import" && SplitArguments(line).size() > 1 &&
                        (SplitArguments(line).size() > 2 || word.empty()) &&
                        !SplitArguments(line).back().starts_with("--");
    switch (command.argument) {
      case CommandArgument::kFile:
        if (!second) {
          return CompleteFile(word);
        }
        [[fallthrough]];
      case CommandArgument::kTable:
        words = names().tables;
        if (command.name == "\\d") {
          words.insert(words.end(), names().models.begin(), names().models.end());
        }
        return FromList(word, words);
      case CommandArgument::kModel:
        return FromList(word, names().models);
      case CommandArgument::kTopic:
        words = StatementHelpTopics();
        for (const models::ModelType& type : models::ModelTypes()) {
          words.push_back(type.name);
        }
        return FromList(word, words);
      case CommandArgument::kWord: {
        for (std::string& known : SplitArguments(command.words)) {
          words.push_back(std::move(known));
        }
        return FromList(word, words);
      }
      case CommandArgument::kNone:
        return {};
    }
  }
  return {};
}

}  // namespace

Completion CompleteText(std::string_view text,
                        const std::function<const CompletionNames&()>& names) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin != std::string_view::npos && (text[begin] == '\\' || text[begin] == '.')) {
    return CompleteCommand(text, names);
  }
  return CompleteStatement(text, names);
}

}  // namespace sluice::server
