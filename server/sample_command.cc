#include <fmt/core.h>
#include <unistd.h>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "server/commands.h"
#include "server/progress_bar.h"
#include "server/sample.h"
#include "server/shell.h"
#include "server/shell_sink.h"
#include "server/signals.h"

namespace sluice::server {
namespace {

// "a.b" -> "\"a\".\"b\"".
std::string QuoteTable(const std::string& table) {
  std::string quoted = "\"";
  for (const char c : table) {
    quoted += c == '.' ? "\".\"" : c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

Status PrepareTable(const SampleOptions& options, const std::string& table,
                    catalog::DataSource& source) {
  ASSIGN_OR_RETURN(const std::optional<std::string> existing, source.ResolveTable(table));
  if (!existing) {
    return OkStatus();
  }
  if (!options.replace) {
    return AlreadyExists(fmt::format("table {} exists", *existing))
        .SqlState("42P07")
        .Hint("--replace drops it first; --table gives another name");
  }
  return source.Execute("DROP TABLE " + QuoteTable(table), nullptr, {}).status();
}

Status MakeTable(const SampleOptions& options, const std::string& table, Interrupts& interrupts) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SampleGenerator> generator,
                   MakeSample(options.kind, options.seed));
  ASSIGN_OR_RETURN(const std::unique_ptr<catalog::DataSource> source,
                   catalog::OpenDataSource(options.into));
  RETURN_IF_ERROR(PrepareTable(options, table, *source));
  const SteadyClock clock;
  ProgressBar bar([](std::string_view text) { fmt::print(stderr, "{}", text); }, clock,
                  TerminalColumns(STDERR_FILENO));
  const TimePoint begin = clock.Now();
  elastic::Progress progress;
  progress.rows_total = options.rows;
  const auto show = [&](int64_t rows) {
    progress.rows_done = rows;
    progress.rows_per_second =
        static_cast<double>(rows) / std::max(SecondsBetween(begin, clock.Now()), 1e-6);
    progress.seconds_left = static_cast<double>(options.rows - rows) / progress.rows_per_second;
    bar.Update(progress);
  };
  const auto report =
      WriteSample(*generator, options.rows, table, *source, show, interrupts.BeginScript());
  bar.Clear();
  RETURN_IF_ERROR(report.status());
  fmt::print("{} rows in table {}: {:.1f} % positive, AUC of the true probabilities {:.4f}\n",
             options.rows, table, 100 * report->positive_share, report->bayes_auc);
  return OkStatus();
}

}  // namespace

int RunSample(const SampleOptions& options) {
  Interrupts interrupts;
  const std::string table = options.table.empty() ? options.kind : options.table;
  const Status status = MakeTable(options, table, interrupts);
  if (!status.ok()) {
    fmt::print(stderr, "{}", RenderWithCaret(status, ""));
    return kExitStatementFailed;
  }
  return kExitOk;
}

}  // namespace sluice::server
