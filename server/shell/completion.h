#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::server {

// Names in a database and of its models, as far as the session may see them.
struct CompletionNames {
  bool folds = false;  // names with capital letters need quotes (PostgreSQL)
  std::vector<std::string> tables;
  std::multimap<std::string, std::string> columns;  // by table
  std::vector<std::string> models;
};

// Possible completions of the word before the cursor.
struct Completion {
  size_t replaced = 0;                  // number of bytes before the cursor
  std::vector<std::string> candidates;  // sorted; each replaces those bytes
  std::string suffix = " ";             // appended if there is only one candidate
};

// `text`: the statement or command up to the cursor. `names` is called only when names are needed.
Completion CompleteText(std::string_view text,
                        const std::function<const CompletionNames&()>& names);

}  // namespace sluice::server
