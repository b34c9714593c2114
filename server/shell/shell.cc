#include "server/shell/shell.h"

#include <cstdio>

#include "server/config/signals.h"
#include "server/shell/completion.h"
#include "server/shell/line_editor.h"
#include "server/shell/shell_commands.h"
#include "server/shell/shell_session.h"

namespace sluice::server {
namespace {

using Outcome = ShellSession::Outcome;

int ExitCode(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
      return kExitStatementFailed;
    case Outcome::kOutputClosed:
      return kExitOutputClosed;
    case Outcome::kOk:
    case Outcome::kExit:
      break;
  }
  return kExitOk;
}

// Words that work at this prompt without a backslash, as they always have.
std::string_view CommandOf(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  const size_t end = line.find_last_not_of(" \t;");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    return {};
  }
  const std::string_view word = line.substr(begin, end - begin + 1);
  if (word == "exit" || word == "quit") {
    return "\\q";
  }
  return word == "help" ? "\\?" : "";
}

// No SQL line begins with a backslash, not even in the middle of a statement.
bool IsBackslash(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin != std::string_view::npos && line[begin] == '\\';
}

// The names that Tab offers: queried when it is pressed, and once more after each statement.
class NameCache {
 public:
  explicit NameCache(ShellSession& session) : session_(session) {}
  void Forget() { known_ = false; }

  const CompletionNames& Get() {
    if (known_) {
      return names_;
    }
    known_ = true;
    names_ = {};
    const auto dialect = session_.Dialect();
    if (!dialect.ok()) {
      return names_;  // a failed transaction, a lost server
    }
    names_.folds = *dialect == SqlDialect::kPostgres;
    for (const auto& row : Ask(TableNames(*dialect))) {
      names_.tables.push_back(row.at(0));
    }
    for (const auto& row : Ask(ColumnNames(*dialect))) {
      names_.columns.emplace(row.at(0), row.at(1));
    }
    for (const auto& row : Ask("SHOW MODELS")) {
      names_.models.push_back(row.at(0));
    }
    return names_;
  }

 private:
  ShellSession::Rows Ask(const std::string& sql) {
    auto rows = session_.Ask(sql);
    return rows.ok() ? *std::move(rows) : ShellSession::Rows();
  }

  ShellSession& session_;
  bool known_ = false;
  CompletionNames names_;
};

}  // namespace

int RunScripts(const std::vector<Script>& scripts, const ShellConnection& connection,
               const ShellOptions& options, Interrupts& interrupts) {
  ShellSession session(connection, options, interrupts, false);
  for (const Script& script : scripts) {
    const Outcome outcome = session.Run(script);
    if (outcome != Outcome::kOk) {
      return ExitCode(outcome);
    }
  }
  const Status written = session.SetOutput("");
  return written.ok() ? kExitOk : ExitCode(session.Fail(written));
}

int RunInteractive(const ShellConnection& connection, const ShellOptions& options,
                   Interrupts& interrupts) {
  ShellSession session(connection, options, interrupts, true);
  NameCache names(session);
  StatementBuffer buffer;
  LineEditor editor(options.history_file, interrupts, [&](std::string_view line) {
    return CompleteText(buffer.text() + std::string(line),
                        [&names]() -> const CompletionNames& { return names.Get(); });
  });
  session.Print(options.greeting + "\nType help for help, exit to leave.\n");
  while (!interrupts.terminate_requested()) {
    const LineEditor::Line line = editor.Read(buffer.at_beginning() ? "sluice> " : "   ...> ");
    if (line.kind == LineEditor::Kind::kEnd) {
      break;
    }
    if (line.kind == LineEditor::Kind::kInterrupted) {
      buffer.Take();
      continue;
    }
    Outcome outcome = Outcome::kOk;
    const std::string_view word = buffer.at_beginning() ? CommandOf(line.text) : "";
    if (!word.empty()) {
      outcome = RunShellCommand(session, word);
    } else if (IsShellCommand(line.text) &&
               (buffer.at_beginning() || (buffer.takes_commands() && IsBackslash(line.text)))) {
      editor.Remember(line.text + "\n");
      outcome = RunShellCommand(session, line.text);
      names.Forget();
    } else {
      const bool runs = FindCommandAfterStatement(buffer, line.text).has_value();
      buffer.Add(line.text);
      if (!buffer.complete() && !runs) {
        continue;
      }
      const std::string script = buffer.Take();
      editor.Remember(script);
      outcome = session.Show(script);
      names.Forget();
    }
    if (outcome == Outcome::kExit || outcome == Outcome::kOutputClosed) {
      return ExitCode(outcome);
    }
  }
  return kExitOk;
}

}  // namespace sluice::server
