#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error_code.h"
#include "elastic/master/journal.pb.h"
#include "elastic/master/master.h"
#include "elastic/queue/queue_codec_internal.h"

// The state of a Master that outlives it.
namespace sluice::elastic {
namespace {

template <typename Fields>
void Put(const std::vector<std::pair<std::string, double>>& metrics, Fields* fields) {
  for (const auto& [name, value] : metrics) {
    MetricState* one = fields->Add();
    one->set_name(name);
    one->set_value(value);
  }
}

template <typename Fields>
std::vector<std::pair<std::string, double>> Get(const Fields& fields) {
  std::vector<std::pair<std::string, double>> metrics;
  for (const MetricState& one : fields) {
    metrics.emplace_back(one.name(), one.value());
  }
  return metrics;
}

}  // namespace

void Master::SaveState(MasterSave* save) const {
  // The suspension is not saved: a master that takes over continues the job.
  // Nor is where a pass stands: a master that takes over begins it again.
  const Phase phase = running_phase_.value_or(phase_);
  save->set_phase(static_cast<uint32_t>(phase == Phase::kBetweenPasses ? Phase::kTraining : phase));
  QueueCodec::Write(meter_.epoch_start(), save->mutable_epoch_start());
  save->set_epoch_loss(meter_.epoch_loss());
  Put(validation_.metrics(), save->mutable_metrics());
  save->set_validation_rows(validation_.rows());
  save->set_validation_checksum(validation_.checksum());
  const EarlyStopping::Best& best = early_stopping_.best();
  save->set_best(best.value);
  save->set_best_epoch(best.epoch.value());
  Put(best.metrics, save->mutable_best_metrics());
  const std::vector<int64_t>& judged = early_stopping_.judged();
  save->mutable_judged()->Add(judged.begin(), judged.end());
  save->set_best_digest(best.digest);
  save->set_best_rate_cuts(best.rate_cuts);
  save->set_started(pool_.started());
  save->set_next_incarnation(pool_.members().next().value());
  for (const auto& [incarnation, worker] : pool_.members().workers()) {
    MemberState* one = save->add_members();
    one->set_name(worker.name);
    one->set_incarnation(incarnation.value());
    one->set_starting(!worker.joined);
  }
  for (const auto& [incarnation, offset] : staleness_.Offsets()) {
    ClockState* one = save->add_clocks();
    one->set_incarnation(incarnation.value());
    one->set_offset(offset);
  }
  if (rounds_.has_value()) {
    SaveWorld(save);
  }
  save->set_parameters_lost(parameters_lost_);
  save->set_begun_again(options_.begun_again);
  if (!result_.ok() && !suspended()) {
    save->set_error_code(static_cast<int>(result_.code()));
    save->set_error(result_.message());
    save->set_error_hint(result_.diagnostics().front().hint);
    save->set_error_sqlstate(result_.diagnostics().front().sqlstate);
  }
}

Result<std::string> Master::TakeJournal(bool* anew) {
  const std::vector<QueueRecord> transitions = queue_.TakeJournal();
  MasterSave state;
  SaveState(&state);
  return journal_.Write(transitions, queue_, state, anew);
}

Status Master::Replay(const std::vector<std::string>& entries, TimePoint now) {
  MasterSave state;
  ASSIGN_OR_RETURN(const bool has_state,
                   journal_.Replay(options_.queue, entries, now, &queue_, &state));
  return has_state ? RestoreState(state, now) : Status();
}

Status Master::RestoreState(const MasterSave& save, TimePoint now) {
  if (save.phase() > static_cast<uint32_t>(Phase::kBetweenPasses)) {
    return Internal(fmt::format("a job that was saved in phase {}", save.phase()));
  }
  phase_ = static_cast<Phase>(save.phase());
  if ((phase_ == Phase::kEvaluating || phase_ == Phase::kKeeping) && !queue_.EpochDone()) {
    return Internal("a job that was saved after an epoch, and its shards in the middle of it");
  }
  meter_.Restore(QueueCodec::Read(save.epoch_start()), save.epoch_loss());
  validation_.Restore(Get(save.metrics()), save.validation_rows(), save.validation_checksum());
  EarlyStopping::Best best;
  best.value = save.best();
  best.epoch = Epoch(save.best_epoch());
  best.metrics = Get(save.best_metrics());
  best.digest = save.best_digest();
  best.rate_cuts = save.best_rate_cuts();
  early_stopping_.Restore(std::move(best), {save.judged().begin(), save.judged().end()});
  std::vector<Membership::Worker> members;
  std::set<Incarnation> known;
  const Incarnation next(save.next_incarnation());
  for (const MemberState& one : save.members()) {
    const Incarnation worker(one.incarnation());
    if (worker == kNoIncarnation || worker >= next || !known.insert(worker).second) {
      return Internal(fmt::format("a job that was saved with incarnation {} of {}", worker, next));
    }
    members.push_back({one.name(), worker, !one.starting(), !one.starting(), now});
  }
  pool_.Restore(save.started(), next, members);
  std::map<Incarnation, int64_t> offsets;
  for (const ClockState& clock : save.clocks()) {
    if (clock.offset() < -kMaxCount || clock.offset() > kMaxCount) {
      return Internal("a job that was saved with a worker far from all others");
    }
    offsets[Incarnation(clock.incarnation())] = clock.offset();
  }
  staleness_.Await(offsets);
  RETURN_IF_ERROR(RestoreWorld(save));
  parameters_lost_ = save.parameters_lost();
  options_.begun_again = save.begun_again();
  result_ = Status();
  if (save.error_code() != 0) {
    result_ = Status(ErrorCode(save.error_code()), save.error())
                  .SqlState(save.error_sqlstate())
                  .Hint(save.error_hint());
  }
  return Status();
}

Result<std::unique_ptr<Master>> Master::TakeOver(const Options& options, Term term,
                                                 const std::vector<std::string>& journal,
                                                 const std::vector<std::string>& alive,
                                                 TimePoint now) {
  auto master = std::make_unique<Master>(options, now);
  RETURN_IF_ERROR(master->Replay(journal, now));
  master->Adopt(term, alive, now);
  return master;
}

void Master::Adopt(Term term, const std::vector<std::string>& alive, TimePoint now) {
  outbox_.AddEvent(
      "master_took_over",
      fmt::format("term {}: epoch {}, {} of {} shards done, {} processes live", term,
                  queue_.epoch(), queue_.shards_done(), queue_.shards(), alive.size()));
  term_ = term;
  std::vector<Incarnation> adopted;
  for (const std::string& name : alive) {
    if (const std::optional<Incarnation> known = pool_.members().Find(name)) {
      adopted.push_back(*known);
    }
  }
  const std::map<Incarnation, Membership::Worker> members = pool_.members().workers();
  std::vector<Incarnation> holders = adopted;
  holders.push_back(kAllWorkers);
  // A job resumed from a checkpoint may be in a later term than its masters.
  term = std::max(term, queue_.state().term() + 1);
  queue_.TakeOver(term, holders, now);
  next_evaluation_task_ = FirstEvaluationTask(term);
  pool_.Open();
  meter_.StartFrom(queue_.totals(), now);
  trained_at_ = now;
  if (phase_ == Phase::kSucceeded && rounds_.has_value()) {
    phase_ = Phase::kExporting;  // the weights were in the previous master's memory
  }
  if (finished()) {
    return;
  }
  if (phase_ == Phase::kEvaluating) {
    evaluation_.Start(queue_.epoch());  // no worker has pushed meanwhile: the same weights
  } else if (phase_ == Phase::kKeeping) {
    OrderKeep();
  } else if (phase_ == Phase::kComparing) {
    StartComparing();
  }
  for (const auto& [incarnation, worker] : members) {
    if (std::find(adopted.begin(), adopted.end(), incarnation) == adopted.end()) {
      GiveUp(incarnation, ExitClass::kPreempted, "gone when the master was replaced", now);
    }
  }
  Scale(pool_.wanted(), now);
  StopUnknown(alive);      // given up by the previous master
  if (!options_.passes) {  // they begin again, and the end of the last master's pass is not theirs
    Advance(now);
  }
}

}  // namespace sluice::elastic
