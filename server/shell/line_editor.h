#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/shell/completion.h"

namespace sluice::server {

class Interrupts;

// Reads a line from the terminal, with libedit's keys, completion, and a history that is kept in a
// file. Not thread-safe.
class LineEditor {
 public:
  enum class Kind { kText, kInterrupted, kEnd };
  struct Line {
    Kind kind = Kind::kEnd;
    std::string text;  // without its newline
  };
  // Completions that Tab offers at the end of the given text; empty: Tab inserts blanks.
  using Completer = std::function<Completion(std::string_view line)>;

  // `history_file` "" keeps no history. `interrupts` reports Ctrl-C.
  LineEditor(const std::string& history_file, Interrupts& interrupts, Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Line Read(const std::string& prompt);
  // Adds a whole statement to the history.
  void Remember(const std::string& statement);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::server
