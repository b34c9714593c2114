#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/master/master.h"
#include "elastic/storage/journal.h"
#include "tests/fuzz/target.h"

// The stored state of a master. The first byte: the lanes of the job (the lower bits, so that it
// may be synchronous), all-reduce (8), and whether the rest is the cut of a checkpoint (16) or
// entries of a journal, each preceded by its length in two bytes.
namespace sluice::elastic {
namespace {

TimePoint At(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

std::vector<std::string> Entries(std::string_view input) {
  std::vector<std::string> entries;
  while (input.size() >= sizeof(uint16_t)) {
    uint16_t size = 0;
    std::memcpy(&size, input.data(), sizeof(size));
    input.remove_prefix(sizeof(size));
    entries.emplace_back(input.substr(0, size));
    input.remove_prefix(std::min<size_t>(size, input.size()));
  }
  return entries;
}

// The next master continues, with workers that follow its orders.
void Resume(Master* master) {
  const Incarnation worker = master->Expect("another", At(1));
  for (int step = 0; step < 40 && !master->finished(); ++step) {
    const TimePoint now = At(2 + 0.3 * step);
    if (master->options().all_reduce.has_value()) {
      WorldArrival arrival;
      arrival.at.closed = step == 0 ? Rendezvous::kNoState : step;
      static_cast<void>(master->Regroup(worker, arrival, now));
      static_cast<void>(master->ReportStep(worker, WorldId(1), step, arrival.position, now));
    }
    const Result<MasterLink::Answer> answer = master->Take(worker, true, {}, now);
    if (answer.ok() && answer->kind == MasterLink::Answer::Kind::kTask) {
      TaskReport report;
      report.task = answer->task.id;
      report.next_batch = answer->task.first_batch + 1;
      report.rows = 1;
      static_cast<void>(master->Report(worker, report, now));
      report.next_batch = std::min(answer->task.first_batch + 2, answer->task.last_batch);
      report.done = true;
      report.end_of_shard = true;
      report.rows = 2;
      static_cast<void>(master->Report(worker, report, now));
    }
    master->Tick(now);
    master->outbox().TakeActions();
    static_cast<void>(master->Describe(now));
  }
  static_cast<void>(master->Outcome());
  static_cast<void>(master->TakeJournal());
}

void TakeOver(std::string_view input) {
  const int how = input.empty() ? 0 : input.front();
  input.remove_prefix(input.empty() ? 0 : 1);
  Master::Options options;
  options.queue.shards = 5;
  options.queue.epochs = 2;
  options.queue.seed = 1;
  options.queue.lanes = static_cast<uint32_t>(how & 7);
  options.queue.journal = true;
  options.workers = 2;
  if ((how & 8) != 0 && options.queue.lanes > 0) {
    options.all_reduce.emplace();
  }
  Result<std::unique_ptr<Master>> master =
      (how & 16) != 0 ? Master::Resume(options, std::string(input), At(0))
                      : Master::TakeOver(options, Term(2), Entries(input), {"w"}, At(0));
  if (master.ok()) {
    Resume(master->get());
  }
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(master_state) {
  sluice::elastic::TakeOver({reinterpret_cast<const char*>(data), size});
  return 0;
}
