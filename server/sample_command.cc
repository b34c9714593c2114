#include <fmt/core.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "catalog/data_source.h"
#include "parser/parser.h"
#include "planner/bind_result.h"
#include "server/commands.h"
#include "server/config/config.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/sample/sample.h"
#include "server/shell/progress_bar.h"
#include "server/shell/shell.h"
#include "server/shell/shell_sink.h"

namespace sluice::server {
namespace {

// Reads the table's name as a statement does; with --replace, drops an existing table of that name.
Result<catalog::TableName> PrepareTable(const SampleOptions& options, catalog::DataSource& source) {
  ASSIGN_OR_RETURN(const parser::Name name,
                   parser::ParseName(options.table.empty() ? options.kind : options.table));
  catalog::ResultTable table;
  ASSIGN_OR_RETURN(table.name, planner::ReadTableName(name, name.parts.size(), source));
  table.replace = options.replace;
  const Result<catalog::ResultPlan> plan = source.PlanResultTable(table, nullptr);
  if (plan.ok() && plan->action == catalog::ResultAction::kMake) {
    return table.name;
  }
  if (!options.replace && (plan.ok() || plan.status().sqlstate() == "42P07")) {
    return AlreadyExists(fmt::format("table {} exists", table.name.Text()))
        .SqlState("42P07")
        .Hint("--replace drops it first; --table gives another name");
  }
  RETURN_IF_ERROR(plan.status());
  RETURN_IF_ERROR(source.Execute("DROP TABLE " + plan->name.Quoted(), nullptr, {}).status());
  return table.name;
}

Status MakeTable(const SampleOptions& options, Interrupts& interrupts) {
  ASSIGN_OR_RETURN(const std::unique_ptr<SampleGenerator> generator,
                   MakeSample(options.kind, options.seed));
  ASSIGN_OR_RETURN(const std::unique_ptr<catalog::DataSource> source,
                   catalog::OpenDataSource(options.into));
  ASSIGN_OR_RETURN(const catalog::TableName table, PrepareTable(options, *source));
  const SteadyClock clock;
  ProgressBar bar([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); },
                  clock, TerminalColumns(STDERR_FILENO));
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
  const std::string summary = fmt::format(
      "{} rows in table {}: {:.1f} % positive, AUC of the true probabilities {:.4f}\n",
      options.rows, Printable(table.Text()), 100 * report->positive_share, report->bayes_auc);
  std::fputs(summary.c_str(), stdout);
  return OkStatus();
}

}  // namespace

int RunSample(const SampleOptions& given) {
  SampleOptions options = given;
  if (!options.into_file.empty()) {
    const auto url = ReadSourceUrl(options.into_file);
    if (!url.ok()) {
      SayError(url.status(), "");
      return kExitUsage;
    }
    options.into = *url;
  }
  if (options.into.empty()) {
    Say("sluice: where to? Give --into sqlite:my.db (or postgresql://user@host/database)\n");
    return kExitUsage;
  }
  Interrupts interrupts;
  const Status status = MakeTable(options, interrupts);
  if (!status.ok()) {
    SayError(status, "");
    return kExitStatementFailed;
  }
  return kExitOk;
}

}  // namespace sluice::server
