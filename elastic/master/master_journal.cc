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

// After this many transitions the whole state is written, so that a replay stays short.
constexpr int64_t kTransitionsToSave = 100'000;
// The whole state of a job of a billion rows takes some megabytes.
constexpr size_t kMostEntryBytes = size_t{256} << 20;

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

void Put(const Placement& placement, PlacementSave* save) {
  save->set_version(placement.map.version);
  for (const auto& [server, address] : placement.map.servers) {
    save->add_servers(server);
    save->add_addresses(address);
  }
  save->mutable_primary()->Add(placement.map.primary.begin(), placement.map.primary.end());
  save->mutable_backup()->Add(placement.map.backup.begin(), placement.map.backup.end());
  save->set_next_server(placement.next);
  save->set_wanted(placement.wanted);
  save->mutable_started()->Add(placement.servers.begin(), placement.servers.end());
}

Result<Placement> Get(const PlacementSave& save) {
  Placement placement;
  placement.map.version = save.version();
  if (save.servers_size() != save.addresses_size()) {
    return Internal("the journal's placement has servers without an address");
  }
  for (int i = 0; i < save.servers_size(); ++i) {
    if (!placement.map.servers.emplace(save.servers(i), save.addresses(i)).second) {
      return Internal(fmt::format("the journal's placement has server {} twice", save.servers(i)));
    }
  }
  placement.map.primary.assign(save.primary().begin(), save.primary().end());
  placement.map.backup.assign(save.backup().begin(), save.backup().end());
  RETURN_IF_ERROR(placement.map.Check());
  placement.next = save.next_server();
  placement.wanted = save.wanted();
  placement.servers.insert(save.started().begin(), save.started().end());
  return placement;
}

}  // namespace

void Master::SaveState(MasterSave* save) const {
  // The suspension is not saved: a master that takes over continues the job.
  save->set_phase(static_cast<uint32_t>(running_phase_.value_or(phase_)));
  QueueCodec::Write(meter_.epoch_start(), save->mutable_epoch_start());
  save->set_epoch_loss(meter_.epoch_loss());
  Put(metrics_, save->mutable_metrics());
  save->set_validation_rows(validation_rows_);
  save->set_validation_checksum(validation_checksum_);
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
  if (!result_.ok() && !suspended()) {
    save->set_error_code(static_cast<int>(result_.code()));
    save->set_error(result_.message());
    save->set_error_hint(result_.diagnostics().front().hint);
    save->set_error_sqlstate(result_.diagnostics().front().sqlstate);
  }
}

void Master::SetPlacement(const Placement& placement) {
  placement_changed_ = placement_changed_ || placement != placement_;
  placement_ = placement;
}

Result<std::string> Master::TakeJournal(bool* anew) {
  const std::vector<QueueRecord> transitions = queue_.TakeJournal();
  JournalEntry entry;
  MasterSave state;
  SaveState(&state);
  std::string bytes = state.SerializeAsString();
  if (transitions.empty() && bytes == journaled_state_ && !placement_changed_) {
    return std::string();
  }
  unsaved_transitions_ += static_cast<int64_t>(transitions.size());
  const bool everything = journaled_state_.empty() || unsaved_transitions_ > kTransitionsToSave;
  if (anew != nullptr) {
    *anew = everything;
  }
  if (everything) {
    unsaved_transitions_ = 0;
    QueueCodec::Write(queue_.state(), entry.mutable_everything());
    journaled_state_.clear();
  } else {
    for (const QueueRecord& transition : transitions) {
      QueueCodec::Write(transition, entry.add_transitions());
    }
  }
  if (bytes != journaled_state_) {
    *entry.mutable_state() = state;
    journaled_state_ = std::move(bytes);
  }
  if (std::exchange(placement_changed_, false) || everything) {
    Put(placement_, entry.mutable_placement());
  }
  const size_t size = entry.ByteSizeLong();
  if (size > kMostEntryBytes) {
    return ResourceExhausted(fmt::format(
        "an entry of {} bytes in the job's journal; {} are allowed", size, kMostEntryBytes));
  }
  return entry.SerializeAsString();
}

Status Master::Replay(const std::vector<std::string>& entries, TimePoint now) {
  JournalEntry entry;  // one, which keeps its memory
  MasterSave state;
  bool has_state = false;
  for (const std::string& bytes : entries) {
    if (!entry.ParseFromString(bytes)) {
      return Status(Code::kInternal, "an entry of the journal cannot be read");
    }
    if (entry.has_everything()) {
      ASSIGN_OR_RETURN(QueueState queue, QueueCodec::Read(options_.queue, entry.everything(), now));
      queue_ = TaskQueue(std::move(queue));
    }
    for (const QueueRecordState& transition : entry.transitions()) {
      ASSIGN_OR_RETURN(const QueueRecord record, QueueCodec::Read(transition));
      RETURN_IF_ERROR(queue_.Replay(record, now));
    }
    if (entry.has_state()) {
      state.Swap(entry.mutable_state());
      has_state = true;
    }
    if (entry.has_placement()) {
      ASSIGN_OR_RETURN(placement_, Get(entry.placement()));
    }
  }
  return has_state ? RestoreState(state, now) : Status();  // the last one has the whole state
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
  metrics_ = Get(save.metrics());
  validation_rows_ = save.validation_rows();
  validation_checksum_ = save.validation_checksum();
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
    if (worker == kNobody || worker >= next || !known.insert(worker).second) {
      return Internal(fmt::format("a job that was saved with incarnation {} of {}", worker, next));
    }
    members.push_back({one.name(), worker, true, true, now});
  }
  pool_.Restore(save.started(), next, members);
  std::map<Incarnation, int64_t> offsets;
  for (const ClockState& clock : save.clocks()) {
    if (clock.offset() < -kMostOfAnything || clock.offset() > kMostOfAnything) {
      return Internal("a job that was saved with a worker far from all others");
    }
    offsets[Incarnation(clock.incarnation())] = clock.offset();
  }
  staleness_.Await(offsets);
  RETURN_IF_ERROR(RestoreWorld(save));
  parameters_lost_ = save.parameters_lost();
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
  AddEvent("master_took_over",
           fmt::format("term {}: epoch {}, {} of {} shards done, {} processes live", term,
                       queue_.epoch(), queue_.shards_done(), queue_.shards(), alive.size()));
  term_ = term;
  std::vector<Incarnation> adopted;
  for (const std::string& name : alive) {
    if (const std::optional<Incarnation> known = pool_.members().Find(name)) {
      adopted.push_back(*known);
    } else {
      // Given up by the previous master, or started when it could no longer record it.
      actions_.push_back({Action::Kind::kStopWorker, name, kNobody});
    }
  }
  const std::map<Incarnation, Membership::Worker> members = pool_.members().workers();
  std::vector<Incarnation> holders = adopted;
  holders.push_back(kEverybody);
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
  Advance(now);
}

}  // namespace sluice::elastic
