#pragma once

#include <memory>
#include <string>

namespace sluice::server {

class Interrupts;

// One line from the terminal, with libedit's keys and a history that outlives the process.
// Not thread-safe.
class LineEditor {
 public:
  enum class Kind { kText, kInterrupted, kEnd };
  struct Line {
    Kind kind = Kind::kEnd;
    std::string text;  // without its newline
  };

  // `history_file` "" keeps no history. Ctrl-C arrives through `interrupts`.
  LineEditor(const std::string& history_file, Interrupts& interrupts);
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
