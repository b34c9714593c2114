#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server {

// What a database and its models are called, as far as a session may see them.
struct CompletionNames {
  bool folds = false;  // names with capitals need quotes (PostgreSQL)
  std::vector<std::string> tables;
  std::multimap<std::string, std::string> columns;  // by table
  std::vector<std::string> models;
};

// How the word before the cursor could go on.
struct Completion {
  size_t replaced = 0;                  // bytes before the cursor
  std::vector<std::string> candidates;  // sorted; each takes the place of these bytes
  std::string suffix = " ";             // behind the only candidate
};

// `text`: the statement, or the command, up to the cursor. `names` is asked only where they matter.
Completion CompleteText(std::string_view text,
                        const std::function<const CompletionNames&()>& names);

}  // namespace sluice::server
