#pragma once

#include "base/status.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/queue_state.h"

#include "elastic/queue/queue.pb.h"

namespace sluice::elastic {

// How a report travels, and lasts.
void ToProto(const TaskReport& report, ReportState* proto);
TaskReport FromProto(const ReportState& proto);

// A queue's state and transitions in the form that lasts.
class QueueCodec {
 public:
  static void Write(const QueueState& state, QueueSave* save);
  // Leases keep their owners, deadlines start anew. A state that was saved for other options, or
  // that cannot be, is refused.
  static Result<QueueState> Read(const QueueOptions& options, const QueueSave& save, TimePoint now);
  static void Write(const QueueRecord& record, QueueRecordState* state);
  static Result<QueueRecord> Read(const QueueRecordState& state);
  static void Write(const Ledger::Totals& totals, TotalsState* state);
  static Ledger::Totals Read(const TotalsState& state);

 private:
  static void Write(const Ledger& ledger, LedgerState* state);
  static void Read(const LedgerState& state, Ledger* ledger);
};

}  // namespace sluice::elastic
