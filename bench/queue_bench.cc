// The cost of the master's queue: operations a second on one core, memory of a large job, and its
// journal. Prints each figure next to its goal.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "elastic/master/master.h"
#include "elastic/queue/queue_codec_internal.h"
#include "elastic/queue/task_queue.h"

namespace {

using namespace sluice;
using namespace sluice::elastic;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this process, in bytes.
double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return static_cast<double>(resident) * 4096;
}

void Print(const std::string& what, double figure, double goal, const std::string& unit,
           bool at_most) {
  const double ratio = at_most ? goal / figure : figure / goal;
  fmt::print("{:<58} {:>12.4g} {:<6} {} {:.4g}: {:.2f}x\n", what, figure, unit,
             at_most ? "at most" : "at least", goal, ratio);
}

TaskReport Trained(const Task& task, int64_t batch, bool end) {
  TaskReport report;
  report.task = task.id;
  report.next_batch = BatchIndex(batch);
  report.rows = (report.next_batch - task.first_batch) * 250;
  report.batches = 4;
  report.shard_rows = 1000;
  report.done = report.end_of_shard = end;
  return report;
}

// Every worker takes a task, reports half of it, then the end.
double OperationsPerSecond(uint64_t workers, bool journal, int64_t shards) {
  QueueOptions options;
  options.shards = shards;
  options.journal = journal;
  TaskQueue queue(options);
  std::vector<Task> tasks(workers);
  const double begin = Seconds();
  int64_t operations = 0;
  while (!queue.EpochDone()) {
    const TimePoint now{operations};
    for (uint64_t worker = 0; worker < workers; ++worker) {
      if (const std::optional<Task> task = queue.Take(Incarnation(worker + 1), now)) {
        tasks[worker] = *task;
        ++operations;
      }
    }
    for (const bool end : {false, true}) {
      for (uint64_t worker = 0; worker < workers; ++worker) {
        const Result<TaskQueue::Answer> answer =
            queue.Report(Incarnation(worker + 1), Trained(tasks[worker], end ? 4 : 2, end), now);
        operations += answer.ok() ? 1 : 0;
      }
    }
    if (journal) {
      queue.TakeJournal();
    }
  }
  return static_cast<double>(operations) / (Seconds() - begin);
}

std::string Saved(const TaskQueue& queue) {
  QueueSave save;
  QueueCodec::Write(queue.state(), &save);
  return save.SerializeAsString();
}

bool Restored(const QueueOptions& options, const std::string& saved) {
  QueueSave save;
  return save.ParseFromString(saved) && QueueCodec::Read(options, save, TimePoint{0}).ok();
}

void LargeJob() {
  const double before = ResidentBytes();
  QueueOptions options;
  options.shards = 1'000'000;
  options.epochs = 2;
  TaskQueue queue(options);
  for (int64_t i = 0; i < options.shards; ++i) {
    TaskReport report = Trained(*queue.Take(Incarnation(1), TimePoint{i}), 4, true);
    report.checksum = 1;
    if (!queue.Report(Incarnation(1), report, TimePoint{i}).ok()) {
      std::abort();
    }
  }
  queue.StartNextEpoch();
  for (Incarnation worker(1); worker <= Incarnation(10'000); ++worker) {
    queue.Take(worker, TimePoint{0});
  }
  Print(fmt::format("memory: {:.0e} rows, 10^6 shards, 10^4 workers",
                    static_cast<double>(queue.totals().rows)),
        (ResidentBytes() - before) / 1e6, 200, "MB", true);
  const double begin = Seconds();
  const std::string saved = Saved(queue);
  const double middle = Seconds();
  if (!Restored(options, saved)) {
    std::abort();
  }
  Print("  saving it", middle - begin, 1, "s", true);
  Print("  restoring it", Seconds() - middle, 1, "s", true);
  fmt::print("  saved: {:.1f} MB\n", static_cast<double>(saved.size()) / 1e6);
}

void Journal() {
  Master::Options options;
  options.queue.shards = 100'000;
  options.queue.journal = true;
  options.workers = 32;
  Master master(options, TimePoint{0});
  master.Start(TimePoint{0});
  std::vector<std::string> entries;
  int64_t transitions = 0;
  const double begin = Seconds();
  for (bool over = false; !over && transitions < 90'000;) {
    // A group: the transitions of a few milliseconds.
    for (Incarnation worker(1); worker <= Incarnation(options.workers); ++worker) {
      const Result<MasterLink::Answer> answer = master.Take(worker, true, {}, TimePoint{0});
      over = !answer.ok() || answer->kind != MasterLink::Answer::Kind::kTask ||
             !master.Report(worker, Trained(answer->task, 4, true), TimePoint{0}).ok();
      transitions += 2;
    }
    entries.push_back(master.TakeJournal().value());
  }
  const double middle = Seconds();
  const auto taken = Master::TakeOver(options, Term(2), entries, {}, TimePoint{0});
  if (!taken.ok() || (*taken)->queue().totals().rows == 0) {
    std::abort();
  }
  const double rate = static_cast<double>(transitions) / (middle - begin);
  Print("journal: transitions decided and written", rate, 200'000, "/s", false);
  Print("  replaying 10^5 of them", (Seconds() - middle) * 1e5 / static_cast<double>(transitions),
        0.1, "s", true);
  size_t bytes = 0;
  for (const std::string& entry : entries) {
    bytes += entry.size();
  }
  fmt::print("  {:.0f} bytes a transition, {} groups\n",
             static_cast<double>(bytes) / static_cast<double>(transitions), entries.size());
}

}  // namespace

int main() {
  LargeJob();  // first: otherwise it would reuse memory that the others have freed
  Print("take, report, report: 8 workers", OperationsPerSecond(8, false, 1'000'000), 500'000, "/s",
        false);
  Print("take, report, report: 10,000 workers", OperationsPerSecond(10'000, false, 1'000'000),
        500'000, "/s", false);
  Print("take, report, report: 10,000 workers, with a journal",
        OperationsPerSecond(10'000, true, 1'000'000), 500'000, "/s", false);
  Journal();
  return 0;
}
