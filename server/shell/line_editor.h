#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/shell/completion.h"

namespace sluice::server {

class Interrupts;

// One line from the terminal, with libedit's keys, completion, and a history that outlives the
// process. Not thread-safe.
class LineEditor {
 public:
  enum class Kind { kText, kInterrupted, kEnd };
  struct Line {
    Kind kind = Kind::kEnd;
    std::string text;  // without its newline
  };
  // What Tab offers for a line that goes so far; empty: Tab is a blank.
  using Completer = std::function<Completion(std::string_view line)>;

  // `history_file` "" keeps no history. Ctrl-C arrives through `interrupts`.
  LineEditor(const std::string& history_file, Interrupts& interrupts, Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  Line Read(const std::string& prompt);
  // Puts a whole statement into the history.
  void Remember(const std::string& statement);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::server
