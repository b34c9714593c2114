#include "elastic/job/local_job.h"

#include <fmt/core.h>

#include <thread>

#include "base/guarded.h"
#include "base/machine.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/direct_links.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/job_options_internal.h"
#include "elastic/storage/background.h"
#include "elastic/worker/worker.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// Checkpoints of a training in one process: a copy in memory, written by a separate thread.
class LocalCheckpoints {
 public:
  LocalCheckpoints(JobCheckpoints& checkpoints, ParameterShard& shard)
      : checkpoints_(checkpoints), directory_(checkpoints.directory()), shard_(shard) {}

  Status Restore() {
    const std::optional<CheckpointDirectory::Found>& from = checkpoints_.restore();
    if (!from.has_value()) {
      return Status();
    }
    if (from->manifest.files.size() != 1) {
      return FailedPrecondition(fmt::format("'{}' was written by servers", from->path));
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> bytes,
                     CheckpointDirectory::OpenPartition(from->path, from->manifest.files[0]));
    return shard_.Load(0, *bytes);
  }

  // On the worker's thread, between two batches: everything that the queue counts has been applied.
  // The master requests one at a time.
  void Begin(MasterHost& host) {
    CheckpointManifest manifest = checkpoints_.Manifest();
    Result<PartitionImage> image = host.SaveCut(&manifest).ok()
                                       ? shard_.Capture(0)
                                       : Result<PartitionImage>(Cancelled("the job is over"));
    if (!image.ok()) {
      host.With([](Master& master, TimePoint now) { master.OnCheckpoint(now); });
      return;
    }
    writer_ = std::jthread([this, &host, manifest = std::move(manifest),
                            image = *std::move(image)]() mutable {
      LowerPriority();
      const int64_t steps = manifest.steps;
      const Result<std::string> written = Guarded(
          "writing a checkpoint", [&] { return Write(std::move(manifest), std::move(image)); });
      const std::string detail =
          written.ok() ? *written : fmt::format("step {}: {}", steps, written.status().message());
      host.With([&](Master& master, TimePoint now) {
        master.outbox().AddEvent(written.ok() ? "checkpoint_written" : "checkpoint_failed", detail);
        master.OnCheckpoint(now);
      });
    });
  }

 private:
  Result<std::string> Write(CheckpointManifest manifest, PartitionImage image) {
    ASSIGN_OR_RETURN(const CheckpointDirectory::Draft draft, directory_.Begin());
    ASSIGN_OR_RETURN(
        const CheckpointManifest::File file,
        CheckpointDirectory::WritePartition(draft.path, 0, [&image](const PartSink& sink) {
          return std::move(image).Encode(sink);
        }));
    manifest.partitions = 1;
    manifest.files = {file};
    const int64_t steps = manifest.steps;
    RETURN_IF_ERROR(directory_.Commit(draft, std::move(manifest)));
    return DescribeCheckpoint(directory_, draft, steps, file.bytes);
  }

  JobCheckpoints& checkpoints_;
  CheckpointDirectory directory_;  // used by the writer
  ParameterShard& shard_;
  std::jthread writer_;  // last: uses the members above
};

// A synchronous round reads all of its shards before it trains on them.
bool ReadsBeside(const TrainingJob& job) {
  return !IsSynchronous(job.plan) &&
         (job.processors == 0 ? MachineProcessors() : job.processors) > 1;
}

}  // namespace

Result<TrainOutcome> TrainInProcess(const TrainingJob& job) {
  PhaseClock clock(Phase::kStart, job.profile);
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Network> network,
                   models::Network::Make(job.plan.model()));
  ASSIGN_OR_RETURN(Master::Options options,
                   MasterOptionsOf(job.plan, network->outputs(), job.dataset, job.validation));
  // Its only worker is this thread, which cannot hang without the master hanging, too.
  options.queue.lease_seconds = 1e9;
  ParameterShard::Options shard_options;
  shard_options.synchronous = IsSynchronous(job.plan);
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterShard> shard,
                   ParameterShard::Make(job.plan.model(), *network, shard_options, job.base));
  options.checkpoint_steps = job.checkpoints != nullptr ? job.checkpoints->every_steps() : 0;
  ASSIGN_OR_RETURN(std::unique_ptr<Master> state,
                   MakeMaster(options, job.checkpoints, SteadyClock().Now()));
  std::optional<LocalCheckpoints> writer;
  if (job.checkpoints != nullptr) {
    RETURN_IF_ERROR(writer.emplace(*job.checkpoints, *shard).Restore());
  }
  MasterHost* running = nullptr;
  MasterHost host(
      std::move(*state), nullptr, kNoJournalTerm,
      [&](const Master::Action& action) -> Status {
        if (action.kind == Master::Action::Kind::kKeepWeights) {
          ASSIGN_OR_RETURN(const ParameterShard::Kept kept,
                           shard->KeepBest(kNoMapVersion, action.keep));
          const std::string digest = DigestOf(*kept.at(0));
          running->With([&](Master& master, TimePoint now) { master.OnWeightsKept(digest, now); });
        }
        if (action.kind == Master::Action::Kind::kCheckpoint) {
          writer->Begin(*running);
        }
        return Status();
      },
      job.progress, job.events);
  running = &host;
  const Incarnation incarnation = host.With([](Master& master, TimePoint now) {
    master.handover().Dismiss();  // this process has the weights and the rows
    return master.Expect("worker", now);
  });
  DirectMasterLink master(host, incarnation);
  DirectParameterLink parameters(*shard, *network, &clock);
  ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                   Worker::Make({.plan = job.plan,
                                 .source = job.source,
                                 .dataset = job.dataset,
                                 .validation = job.validation,
                                 .clock = &clock,
                                 .reads_beside = ReadsBeside(job),
                                 .profile = job.profile,
                                 .rows_read_again =
                                     [&host](const std::string& why) {
                                       host.With([&why](Master& told, TimePoint) {
                                         told.outbox().AddEvent(kRowsReadAgain, why);
                                       });
                                     }},
                                master, &parameters));
  const Status worked = [&] {
    const std::stop_callback finish(
        job.finish, [&host] { host.With([](Master& over, TimePoint) { over.EndWithEpoch(); }); });
    return worker->Run(job.stop);
  }();
  clock.Enter(Phase::kFinishing);
  writer.reset();
  if (!worked.ok()) {
    host.ReportLastProgress();
  }
  RETURN_IF_ERROR(worked);
  RETURN_IF_ERROR(host.result());
  std::string digest;
  TrainOutcome outcome = host.With([&](Master& over, TimePoint) {
    digest = over.best_digest();
    return over.Outcome();
  });
  ASSIGN_OR_RETURN(outcome.weights, shard->ExportAll(*network));
  if (!digest.empty()) {
    RETURN_IF_ERROR(CheckDigest(DigestOf(outcome.weights), digest));
  }
  return outcome;
}

}  // namespace sluice::elastic
