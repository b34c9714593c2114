#include "elastic/queue/task.h"

#include <fmt/core.h>

#include <cmath>

namespace sluice::elastic {
namespace {

constexpr int kTaskBitsOfATerm = 40;
constexpr int kAttemptBitsOfATerm = 20;

}  // namespace

TaskId FirstTaskOf(Term term) {
  return TaskId((static_cast<int64_t>(term.index()) << kTaskBitsOfATerm) + 1);
}

Term TermOf(TaskId task) {
  return Term::At(static_cast<size_t>((task.value() - 1) >> kTaskBitsOfATerm));
}

Attempt AttemptBefore(Term term) {
  return Attempt(static_cast<uint32_t>(term.index() << kAttemptBitsOfATerm));
}

double CountedSum(double sum) {
  constexpr double kUnits = 1U << 20U;
  return std::nearbyint(sum * kUnits) / kUnits;
}

Status CheckReport(const TaskReport& report) {
  for (int64_t count : {report.next_batch.value(), report.batches, report.shard_rows, report.rows,
                        report.rows_read, report.rows_retried}) {
    if (count < 0 || count > kMaxCount) {
      return InvalidArgument(
          fmt::format("a report on task {} counts {} of something", report.task, count));
    }
  }
  if (!(report.read_seconds >= 0)) {
    return InvalidArgument(
        fmt::format("a report on task {} says that reading its rows took {} seconds", report.task,
                    report.read_seconds));
  }
  for (const TaskReport& merged : report.merged) {
    if (!merged.done || !merged.sums.empty() || !merged.merged.empty()) {
      return InvalidArgument(
          fmt::format("a report on task {} has others that cannot be part of it", report.task));
    }
    RETURN_IF_ERROR(CheckReport(merged));
  }
  return Status();
}

}  // namespace sluice::elastic
