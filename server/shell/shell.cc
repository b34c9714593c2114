#include "server/shell/shell.h"

#include <unistd.h>

#include "base/guarded.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/shell/line_editor.h"
#include "server/shell/shell_sink.h"
#include "server/shell/statement_buffer.h"

namespace sluice::server {
namespace {

constexpr std::string_view kHelpText =
    R"(A statement ends with ';' and may go over several lines. For example:
  SELECT * FROM t LABEL y INTO m;                    train; the model type is chosen for you
  SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[64,32] LABEL y INTO m;
  SELECT * FROM u TO PREDICT scored.y USING m;       writes table scored
  SELECT * FROM u TO EVALUATE m LABEL y;
  EXPLAIN SELECT * FROM t LABEL y INTO m;            the plan; nothing runs
  SHOW MODELS;  DESCRIBE MODEL m;  SHOW MODEL TYPES;  DESCRIBE MODEL TYPE DNNClassifier;
  SHOW JOBS;  SHOW JOB 1;  CANCEL JOB 1;
Everything else goes to the database as it is.
Ctrl-C stops a running statement or clears the line; Ctrl-D or 'exit' ends.
)";

// Runs one script and prints its error with the place. Returns what the shell should.
int RunOne(const std::string& script, const ScriptRunner& runner, const ShellOptions& options,
           Interrupts& interrupts) {
  ShellSink sink(options.format, stdout, stderr, TerminalColumns(STDERR_FILENO));
  Status status =
      Guarded("running a script", [&] { return runner(script, interrupts.BeginScript(), sink); });
  interrupts.EndScript();
  const Status output = sink.Finish();
  if (sink.output_closed()) {
    return kExitOutputClosed;  // it has read what it wanted
  }
  if (status.ok()) {
    status = output;
  }
  if (!status.ok()) {
    SayError(status, script);
  }
  return status.ok() ? kExitOk : kExitStatementFailed;
}

enum class Command { kNone, kExit, kHelp };

// Words that the shell itself answers, at the start of a statement only.
Command FindCommand(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  const size_t end = line.find_last_not_of(" \t;");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return Command::kNone;
  }
  const std::string_view word = line.substr(begin, end - begin + 1);
  if (word == "exit" || word == "quit" || word == "\\q") {
    return Command::kExit;
  }
  return word == "help" || word == "\\h" || word == "\\?" ? Command::kHelp : Command::kNone;
}

}  // namespace

int RunScripts(const std::vector<std::string>& scripts, const ScriptRunner& runner,
               const ShellOptions& options, Interrupts& interrupts) {
  for (const std::string& script : scripts) {
    const int exit = interrupts.terminate_requested() ? kExitStatementFailed
                                                      : RunOne(script, runner, options, interrupts);
    if (exit != kExitOk) {
      return exit;
    }
  }
  return kExitOk;
}

int RunInteractive(const ScriptRunner& runner, const ShellOptions& options,
                   Interrupts& interrupts) {
  LineEditor editor(options.history_file, interrupts);
  StatementBuffer buffer;
  std::fputs((options.greeting + "\nType help for help, exit to leave.\n").c_str(), stdout);
  std::fflush(stdout);
  while (!interrupts.terminate_requested()) {
    const LineEditor::Line line = editor.Read(buffer.blank() ? "sluice> " : "   ...> ");
    if (line.kind == LineEditor::Kind::kEnd) {
      break;
    }
    if (line.kind == LineEditor::Kind::kInterrupted) {
      buffer.Take();
      continue;
    }
    const Command command = buffer.blank() ? FindCommand(line.text) : Command::kNone;
    if (command == Command::kExit) {
      break;
    }
    if (command == Command::kHelp) {
      std::fwrite(kHelpText.data(), 1, kHelpText.size(), stdout);
      std::fflush(stdout);
      continue;
    }
    buffer.Add(line.text);
    if (buffer.complete()) {
      const std::string script = buffer.Take();
      editor.Remember(script);
      if (RunOne(script, runner, options, interrupts) == kExitOutputClosed) {
        return kExitOutputClosed;
      }
    }
  }
  return kExitOk;
}

}  // namespace sluice::server
