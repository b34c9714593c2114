#pragma once

#include "base/status.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/queue_state.h"

#include "elastic/queue/queue.pb.h"

namespace sluice::elastic {

// A report as a message, and in stored form.
void ToProto(const TaskReport& report, ReportState* proto);
TaskReport FromProto(const ReportState& proto);

// The stored form of a queue's state and transitions.
class QueueCodec {
 public:
  static void Write(const QueueState& state, QueueSave* save);
  // Leases keep their owners; their deadlines start anew. A state that was saved with other
  // options, or that is inconsistent, is refused.
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
