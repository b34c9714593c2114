#include "server/shell/shell_session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <variant>

#include "base/guarded.h"
#include "parser/parser.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/load/load_table.h"
#include "server/load/load_target.h"
#include "server/shell/shell_commands.h"

namespace sluice::server {
namespace {

// Limit, for a script that includes itself.
constexpr size_t kDeepestInclude = 32;

struct StatementPlaces {
  std::vector<size_t> begins;
  std::vector<Rounding> rounding;  // see ShellSink::ExpectStatements
};

StatementPlaces FindStatements(std::string_view script) {
  StatementPlaces places;
  const auto statements = parser::Parse(script);
  if (!statements.ok()) {
    return places;  // running it reports the error
  }
  for (const parser::Statement& statement : *statements) {
    const Span span = std::visit([](const auto& any) { return any.span; }, statement);
    places.begins.push_back(span.valid() ? static_cast<size_t>(span.begin) : 0);
    const bool measured = std::holds_alternative<parser::TrainStatement>(statement) ||
                          std::holds_alternative<parser::EvaluateStatement>(statement) ||
                          std::holds_alternative<parser::ModelReportStatement>(statement) ||
                          std::holds_alternative<parser::ShowStatement>(statement) ||
                          std::holds_alternative<parser::JobStatement>(statement);
    places.rounding.push_back(measured ? Rounding::kAll
                              : std::holds_alternative<parser::PredictStatement>(statement)
                                  ? Rounding::kProbabilities
                                  : Rounding::kNone);
  }
  return places;
}

// Moves the error's places by the `begin` bytes that precede the text.
Status Shifted(const Status& status, size_t begin) {
  Status shifted;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    Span span = diagnostic.span;
    if (span.valid()) {
      span.begin += static_cast<int64_t>(begin);
      span.end += static_cast<int64_t>(begin);
    }
    shifted.Add(Status(diagnostic.code, diagnostic.message)
                    .SqlState(diagnostic.sqlstate)
                    .At(span)
                    .Detail(diagnostic.detail)
                    .Hint(diagnostic.hint));
  }
  return shifted;
}

// A line of standard input for COPY; "" at its end or at the line that ends the data.
Result<std::string> ReadInputLine() {
  std::string line;
  for (int c = std::getc(stdin); c != EOF; c = std::getc(stdin)) {
    line += static_cast<char>(c);
    if (c == '\n') {
      break;
    }
  }
  std::clearerr(stdin);  // after Ctrl-D the prompt goes on
  const std::string_view text(line.data(), line.find_last_not_of("\r\n") + 1);
  return text == kEndOfCopy ? "" : line;
}

// Keeps rows as texts; ignores everything else.
class TextRows final : public executor::ResultSink {
 public:
  Status Rows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      std::vector<std::string>& cells = rows.emplace_back();
      for (const RowBatch::Column& column : batch.columns) {
        cells.push_back(CellText(column, row));
      }
    }
    return OkStatus();
  }

  ShellSession::Rows rows;
};

}  // namespace

ShellSession::ShellSession(const ShellConnection& connection, const ShellOptions& options,
                           Interrupts& interrupts, bool interactive)
    : connection_(connection),
      display_(options.display),
      interrupts_(interrupts),
      interactive_(interactive),
      pager_(options.pager) {}

ShellSession::~ShellSession() {
  static_cast<void>(SetOutput(""));
}

ShellSession::Outcome ShellSession::Run(const Script& script) {
  const Place before = place_;
  int line = 1;
  size_t counted = 0;
  Outcome outcome = Outcome::kOk;
  for (const ScriptPart& part : SplitAtCommands(script.text)) {
    line += static_cast<int>(std::count(script.text.begin() + static_cast<ptrdiff_t>(counted),
                                        script.text.begin() + static_cast<ptrdiff_t>(part.begin),
                                        '\n'));
    counted = part.begin;
    place_ = {script.file, line};
    if (interrupts_.terminate_requested()) {
      outcome = Outcome::kFailed;
    } else if (part.command) {
      outcome = RunShellCommand(
          *this, std::string_view(script.text).substr(part.begin, part.end - part.begin));
    } else {
      outcome = RunStatements(script, part);
    }
    if (outcome != Outcome::kOk) {
      break;
    }
  }
  place_ = before;
  return outcome;
}

ShellSession::Outcome ShellSession::Include(const std::string& path) {
  if (included_from_.size() >= kDeepestInclude) {
    return Fail(ResourceExhausted(
        fmt::format("{} files are being read, one from the other", included_from_.size())));
  }
  const auto script = ReadScript(path);
  if (!script.ok()) {
    return Fail(script.status());
  }
  included_from_.push_back(place_);
  const Outcome outcome = Run(*script);
  included_from_.pop_back();
  return outcome;
}

template <typename Work>
ShellSession::Outcome ShellSession::RunShown(const std::vector<Rounding>& rounding,
                                             const Work& work, Status* failure, size_t* done) {
  ShellSink sink(display_, MakeScreen());
  sink.ExpectStatements(rounding);
  *failure = Guarded("running a script", [&] { return work(interrupts_.BeginScript(), sink); });
  interrupts_.EndScript();
  const bool cancelled_in_pager = sink.pager_left();
  const Status output = sink.Finish();
  *done = sink.statements_done();
  if (interactive_) {
    interrupts_.ClearWake();  // Ctrl-C was meant for the pager
  }
  if (sink.output_closed()) {
    return Outcome::kOutputClosed;  // the pager has read what it wanted
  }
  if (cancelled_in_pager || sink.pager_left()) {
    *failure = OkStatus();
    return Outcome::kOk;
  }
  if (failure->ok()) {
    *failure = output;
  }
  return failure->ok() ? Outcome::kOk : Outcome::kFailed;
}

// The data in the script; at the prompt and for -c, standard input.
CopyInput ShellSession::CopyInputOf(const Script& script, const ScriptPart& part) {
  if (!part.copied) {
    return {};
  }
  if (part.copied->empty() && script.file.empty()) {
    if (interactive_) {
      Print("Type the rows; end with \\. on a line of its own, or with Ctrl-D.\n");
    }
    return ReadInputLine;
  }
  return [rest = *part.copied]() mutable {
    constexpr size_t kPiece = size_t{1} << 20;
    const std::string piece(rest.substr(0, kPiece));
    rest.remove_prefix(piece.size());
    return Result<std::string>(piece);
  };
}

ShellSession::Outcome ShellSession::RunStatements(const Script& script, const ScriptPart& part) {
  const std::string text = script.text.substr(part.begin, part.end - part.begin);
  const StatementPlaces statements = FindStatements(text);
  if (connection_.set_copy_input) {
    connection_.set_copy_input(CopyInputOf(script, part));
  }
  Status failure;
  size_t done = 0;
  const Outcome outcome = RunShown(
      statements.rounding,
      [&](std::stop_token stop, executor::ResultSink& sink) {
        return connection_.run(text, std::move(stop), sink);
      },
      &failure, &done);
  if (outcome != Outcome::kFailed) {
    return outcome;
  }
  const Span span = failure.diagnostics().front().span;
  const size_t at = part.begin + (span.valid() ? static_cast<size_t>(span.begin)
                                  : done < statements.begins.size() ? statements.begins[done]
                                                                    : 0);
  const auto end = script.text.begin() + static_cast<ptrdiff_t>(std::min(at, script.text.size()));
  place_.line = 1 + static_cast<int>(std::count(script.text.begin(), end, '\n'));
  return PrintError(Shifted(failure, part.begin), script.text);
}

ShellSession::Outcome ShellSession::PrintError(const Status& status, std::string_view text) {
  std::string shown;
  if (!place_.file.empty()) {
    shown = fmt::format("{}:{}: ", place_.file, place_.line);
  }
  shown += RenderWithCaret(status, text);
  for (auto from = included_from_.rbegin(); from != included_from_.rend(); ++from) {
    if (!from->file.empty()) {
      shown += fmt::format("read by {}:{}\n", from->file, from->line);
    }
  }
  Say(shown);
  return Outcome::kFailed;
}

ShellSession::Outcome ShellSession::Fail(const Status& status) {
  return PrintError(status, "");
}

void ShellSession::Print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Screen ShellSession::MakeScreen() const {
  Screen screen;
  screen.err_columns = TerminalColumns(STDERR_FILENO);
  if (output_program_ || output_file_ != nullptr) {
    screen.out = output_program_ ? output_program_->input() : output_file_;
    return screen;
  }
  screen.out_columns = TerminalColumns(STDOUT_FILENO);
  if (interactive_ && display_.pager && screen.out_columns > 0) {
    screen.lines = TerminalLines(STDOUT_FILENO);
    screen.pager = pager_;
  }
  return screen;
}

Status ShellSession::SetOutput(const std::string& target) {
  if (output_file_ != nullptr && std::fclose(std::exchange(output_file_, nullptr)) != 0) {
    return Unavailable(fmt::format("cannot write the rows: {}", std::strerror(errno)));
  }
  output_program_.reset();  // waits for it
  if (target.empty()) {
    return OkStatus();
  }
  errno = 0;
  if (target.front() == '|') {
    output_program_ = PipedProgram::Start(target.substr(1));
  } else {
    output_file_ = std::fopen(target.c_str(), "we");
  }
  if (!output_program_ && output_file_ == nullptr) {
    return NotFound(fmt::format("cannot write to {}: {}", target, std::strerror(errno)))
        .SqlState("58P01");
  }
  return OkStatus();
}

Result<ShellSession::Rows> ShellSession::Ask(const std::string& sql) {
  TextRows rows;
  const Status asked = Guarded(
      "running a script", [&] { return connection_.run(sql, interrupts_.BeginScript(), rows); });
  interrupts_.EndScript();
  RETURN_IF_ERROR(asked);
  return std::move(rows.rows);
}

Result<SqlDialect> ShellSession::Dialect() {
  if (!dialect_) {
    const auto answer = Ask("SELECT version()");  // SQLite lacks this function
    if (!answer.ok() && answer.status().sqlstate() != "42883" &&
        answer.status().message().find("version") == std::string::npos) {
      return answer.status();
    }
    dialect_ = answer.ok() ? SqlDialect::kPostgres : SqlDialect::kSqlite;
  }
  return *dialect_;
}

ShellSession::Outcome ShellSession::Load(const LoadOptions& load) {
  const auto dialect = Dialect();
  if (!dialect.ok()) {
    return Fail(dialect.status());
  }
  Status failure;
  size_t done = 0;
  const Outcome outcome = RunShown(
      {},
      [&](std::stop_token stop, executor::ResultSink& sink) {
        if (connection_.load) {
          return connection_.load(load, stop, sink);
        }
        const RunSql run = [&](const std::string& script, executor::ResultSink& answers) {
          return connection_.run(script, stop, answers);
        };
        const auto target = MakeScriptTarget(run, *dialect == SqlDialect::kPostgres);
        return LoadTableByScript(load, *target, stop, sink);
      },
      &failure, &done);
  return outcome == Outcome::kFailed ? Fail(failure) : outcome;
}

}  // namespace sluice::server
