#include "elastic/queue/queue_codec_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace sluice::elastic {
namespace {

// Raised when a field changes its meaning; adding fields does not change it.
constexpr uint32_t kFormat = 1;

void Put(const Ledger::Skipped& skipped, SkippedState* state) {
  state->set_epoch(skipped.epoch.value());
  state->set_shard(skipped.shard.value());
  state->set_first_batch(skipped.first_batch.value());
  state->set_last_batch(skipped.last_batch.value());
  state->set_rows(skipped.rows);
}

Ledger::Skipped Get(const SkippedState& state) {
  return {Epoch(state.epoch()), ShardId(state.shard()), BatchIndex(state.first_batch()),
          BatchIndex(state.last_batch()), state.rows()};
}

// Unordered maps are written in order, so that equal states are equal bytes.
template <typename Map>
auto Sorted(const Map& map) {
  std::vector<typename Map::key_type> keys;
  for (const auto& entry : map) {
    if constexpr (requires { entry.first; }) {
      keys.push_back(entry.first);
    } else {
      keys.push_back(entry);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

Status Damaged(const char* what) {
  return Status(Code::kInternal, fmt::format("a saved queue is damaged: {}", what));
}

bool IsCount(int64_t number) {
  return number >= 0 && number <= kMaxCount;
}

Status CheckLedger(const LedgerState& state, const QueueSave& save) {
  if (save.epoch() < 1 || static_cast<uint32_t>(state.rows_per_epoch_size()) != save.epoch() ||
      state.missing_per_epoch_size() != state.rows_per_epoch_size() ||
      state.shard_rows_size() != save.shards() ||
      (state.checksums_size() != 0 && state.checksums_size() != save.shards()) ||
      static_cast<int64_t>(state.read().size()) > state.checksums_size()) {
    return Damaged("a ledger of other epochs or shards");
  }
  const TotalsState& totals = state.totals();
  const auto is_row = [](int64_t rows) { return IsCount(rows + 1); };  // -1: not known
  if (!IsCount(totals.rows()) || !IsCount(totals.rows_read()) || !IsCount(totals.rows_retried()) ||
      !std::all_of(state.rows_per_epoch().begin(), state.rows_per_epoch().end(), IsCount) ||
      !std::all_of(state.shard_rows().begin(), state.shard_rows().end(), is_row)) {
    return Damaged("a ledger that counts nonsense");
  }
  return Status();
}

// States that no sequence of transitions reaches: a queue that continued from them would be
// inconsistent.
Status CheckSave(const QueueOptions& options, const QueueSave& save) {
  RETURN_IF_ERROR(CheckLedger(save.ledger(), save));
  const int64_t lanes = options.lanes;
  const int64_t round_begin = lanes > 0 ? std::min(options.shards, save.round() * lanes) : 0;
  if (save.cursor() < 0 || save.cursor() > options.shards || !IsCount(save.done()) ||
      save.round() < 0 || save.round() > options.shards || !IsCount(save.round_done()) ||
      !IsCount(save.round_steps()) || !IsCount(save.batches_committed()) || save.next_task() < 1 ||
      Term(save.term()) < Term::First() || Term(save.term()) > kLastTerm) {
    return Damaged("it is at no place of an epoch");
  }
  std::set<int64_t> open;
  for (const RangeState& range : save.ranges()) {
    if (range.position() < round_begin || range.position() >= save.cursor() || range.first() < 0 ||
        range.next() < range.first() || range.last() < range.next() || !IsCount(range.next()) ||
        !IsCount(range.rows()) || !IsCount(range.batches()) || !IsCount(range.shard_rows())) {
      return Damaged("a range of no shard");
    }
    open.insert(range.position());
  }
  if (save.done() + static_cast<int64_t>(open.size()) != save.cursor() ||
      (lanes > 0 && save.done() != round_begin + save.round_done())) {
    return Damaged("shards that are neither open nor done");
  }
  std::set<int64_t> once;
  for (const OpenShardState& shard : save.open_shards()) {
    if (!open.contains(shard.position()) || !once.insert(shard.position()).second ||
        !IsCount(shard.rows())) {
      return Damaged("an open shard without a range");
    }
  }
  const auto is_shard = [&](int64_t shard) { return shard >= 0 && shard < options.shards; };
  if (!std::all_of(save.given_up().begin(), save.given_up().end(), is_shard) ||
      !std::all_of(save.failures().begin(), save.failures().end(),
                   [&](const FailuresState& one) { return is_shard(one.shard()); })) {
    return Damaged("a failure of no shard");
  }
  return Status();
}

}  // namespace

void ToProto(const TaskReport& report, ReportState* proto) {
  proto->set_task(report.task.value());
  proto->set_done(report.done);
  proto->set_end_of_shard(report.end_of_shard);
  proto->set_next_batch(report.next_batch.value());
  proto->set_batches(report.batches);
  proto->set_shard_rows(report.shard_rows);
  proto->set_checksum(report.checksum);
  proto->set_rows(report.rows);
  proto->set_rows_read(report.rows_read);
  proto->set_rows_retried(report.rows_retried);
  proto->set_loss(report.loss);
  proto->set_weight(report.weight);
  proto->set_metrics(report.metrics);
  proto->mutable_versions()->Assign(report.versions.begin(), report.versions.end());
  proto->mutable_checksums()->Assign(report.checksums.begin(), report.checksums.end());
  proto->set_sums(report.sums);
  proto->set_read_seconds(report.read_seconds);
  for (const TaskReport& merged : report.merged) {
    ToProto(merged, proto->add_merged());
  }
}

TaskReport FromProto(const ReportState& proto) {
  TaskReport report;
  report.task = TaskId(proto.task());
  report.done = proto.done();
  report.end_of_shard = proto.end_of_shard();
  report.next_batch = BatchIndex(proto.next_batch());
  report.batches = proto.batches();
  report.shard_rows = proto.shard_rows();
  report.checksum = proto.checksum();
  report.rows = proto.rows();
  report.rows_read = proto.rows_read();
  report.rows_retried = proto.rows_retried();
  report.loss = proto.loss();
  report.weight = proto.weight();
  report.metrics = proto.metrics();
  report.versions.assign(proto.versions().begin(), proto.versions().end());
  report.checksums.assign(proto.checksums().begin(), proto.checksums().end());
  report.sums = proto.sums();
  report.read_seconds = proto.read_seconds();
  for (const ReportState& merged : proto.merged()) {
    report.merged.push_back(FromProto(merged));
  }
  return report;
}

void QueueCodec::Write(const Ledger::Totals& totals, TotalsState* state) {
  state->set_rows(totals.rows);
  state->set_rows_read(totals.rows_read);
  state->set_rows_retried(totals.rows_retried);
  state->set_loss(totals.loss);
  state->set_weight(totals.weight);
}

Ledger::Totals QueueCodec::Read(const TotalsState& state) {
  return {state.rows(), state.rows_read(), state.rows_retried(), state.loss(), state.weight()};
}

void QueueCodec::Write(const Ledger& ledger, LedgerState* state) {
  Write(ledger.totals_, state->mutable_totals());
  state->mutable_rows_per_epoch()->Add(ledger.rows_per_epoch_.begin(),
                                       ledger.rows_per_epoch_.end());
  state->mutable_missing_per_epoch()->Add(ledger.missing_per_epoch_.begin(),
                                          ledger.missing_per_epoch_.end());
  state->mutable_shard_rows()->Add(ledger.shard_rows_.begin(), ledger.shard_rows_.end());
  state->mutable_checksums()->Add(ledger.checksums_.begin(), ledger.checksums_.end());
  state->mutable_read()->assign(ledger.read_.begin(), ledger.read_.end());
  for (const Ledger::Skipped& skipped : ledger.skipped_) {
    Put(skipped, state->add_skipped());
  }
}

void QueueCodec::Read(const LedgerState& state, Ledger* ledger) {
  ledger->totals_ = Read(state.totals());
  ledger->rows_per_epoch_.assign(state.rows_per_epoch().begin(), state.rows_per_epoch().end());
  ledger->missing_per_epoch_.assign(state.missing_per_epoch().begin(),
                                    state.missing_per_epoch().end());
  ledger->shard_rows_.assign(state.shard_rows().begin(), state.shard_rows().end());
  ledger->checksums_.assign(state.checksums().begin(), state.checksums().end());
  ledger->read_.assign(state.read().begin(), state.read().end());
  for (const SkippedState& skipped : state.skipped()) {
    ledger->skipped_.push_back(Get(skipped));
  }
}

void QueueCodec::Write(const QueueState& state, QueueSave* save) {
  save->set_format(kFormat);
  save->set_shards(state.options_.shards);
  save->set_seed(state.options_.seed);
  save->set_lanes(state.options_.lanes);
  save->set_epoch(state.epoch_.value());
  save->set_cursor(state.cursor_.value());
  save->set_round(state.round_.value());
  save->set_round_done(state.round_done_);
  save->set_round_steps(state.round_steps_);
  save->set_done(state.done_);
  save->set_next_task(state.next_task_.value());
  save->set_term(state.term_.value());
  save->set_batches_committed(state.batches_committed_);
  Write(state.ledger_, save->mutable_ledger());
  for (const auto& [key, range] : state.ranges_) {
    RangeState* one = save->add_ranges();
    one->set_position(key.position.value());
    one->set_first(key.range.value());
    one->set_last(range.last.value());
    one->set_next(range.next.value());
    one->set_rows(range.rows);
    one->set_attempt(range.attempt.value());
    one->set_batches(range.batches);
    one->set_shard_rows(range.shard_rows);
    one->set_expiries(range.expiries);
    one->set_loss(range.loss);
    one->set_weight(range.weight);
    one->set_waiting(state.waiting_.contains(key));
  }
  for (TaskId task : Sorted(state.leases_)) {
    const QueueState::Lease& lease = state.leases_.at(task);
    LeaseState* one = save->add_leases();
    one->set_position(lease.key.position.value());
    one->set_range(lease.key.range.value());
    one->set_owner(lease.owner.value());
    one->set_first_batch(lease.task.first_batch.value());
    one->set_last_batch(lease.task.last_batch.value());
    one->set_rows_before(lease.rows_before);
    one->set_loss_before(lease.loss_before);
    one->set_weight_before(lease.weight_before);
    one->set_expired(lease.expired);
    ToProto(lease.last_report, one->mutable_said());
  }
  for (ShardPosition position : Sorted(state.open_shards_)) {
    const OpenShard& shard = state.open_shards_.at(position);
    OpenShardState* one = save->add_open_shards();
    one->set_position(position.value());
    one->set_rows(shard.rows);
    one->set_cut_short(shard.cut_short);
    if (shard.skipped.has_value()) {
      Put(*shard.skipped, one->mutable_skipped());
    }
  }
  for (ShardId shard : Sorted(state.given_up_)) {
    save->add_given_up(shard.value());
  }
  for (ShardId shard : Sorted(state.failures_)) {
    FailuresState* one = save->add_failures();
    one->set_shard(shard.value());
    const std::vector<Incarnation>& owners = state.failures_.at(shard);
    for (const Incarnation owner : owners) {
      one->add_owners(owner.value());
    }
  }
}

Result<QueueState> QueueCodec::Read(const QueueOptions& options, const QueueSave& save,
                                    TimePoint now) {
  if (save.format() != kFormat) {
    return Status(Code::kFailedPrecondition,
                  fmt::format("a queue saved in format {}; this program reads format {}",
                              save.format(), kFormat));
  }
  if (save.shards() != options.shards || save.seed() != options.seed ||
      save.lanes() != options.lanes || save.ledger().shard_rows_size() != options.shards) {
    return FailedPrecondition("a queue that was saved by another job");
  }
  RETURN_IF_ERROR(CheckSave(options, save));
  QueueState state(options);
  state.epoch_ = Epoch(save.epoch());
  state.order_ = ShardOrder(options.shards, options.seed, state.epoch_, options.shuffle);
  state.cursor_ = ShardPosition(save.cursor());
  state.round_ = RoundIndex(save.round());
  state.round_done_ = save.round_done();
  state.round_steps_ = save.round_steps();
  state.done_ = save.done();
  state.next_task_ = TaskId(save.next_task());
  state.term_ = Term(save.term());
  state.batches_committed_ = save.batches_committed();
  Read(save.ledger(), &state.ledger_);
  for (const RangeState& one : save.ranges()) {
    const QueueState::Key key{ShardPosition(one.position()), RangeId(one.first())};
    if (state.ranges_.contains(key)) {
      return Damaged("a range that is there twice");
    }
    QueueState::Range& range = state.ranges_[key];
    range.last = BatchIndex(one.last());
    range.next = BatchIndex(one.next());
    range.rows = one.rows();
    range.attempt = Attempt(one.attempt());
    range.batches = one.batches();
    range.shard_rows = one.shard_rows();
    range.loss = one.loss();
    range.weight = one.weight();
    range.expiries = one.expiries();
    if (one.waiting()) {
      state.waiting_.insert(key);
    }
  }
  for (const LeaseState& one : save.leases()) {
    const QueueState::Key key{ShardPosition(one.position()), RangeId(one.range())};
    const auto range = state.ranges_.find(key);
    if (range == state.ranges_.end()) {
      return Damaged("a lease of no range");
    }
    QueueState::Lease lease;
    lease.last_report = FromProto(one.said());
    if (lease.last_report.task < TaskId::First() ||
        state.leases_.contains(lease.last_report.task) || !CheckReport(lease.last_report).ok() ||
        !IsCount(one.rows_before()) || one.first_batch() < 0 ||
        one.last_batch() < one.first_batch()) {
      return Damaged("a lease of no task");
    }
    lease.owner = Incarnation(one.owner());
    lease.key = key;
    lease.rows_before = one.rows_before();
    lease.loss_before = one.loss_before();
    lease.weight_before = one.weight_before();
    lease.expired = one.expired();
    lease.since = now;
    lease.progress = now;
    lease.task.id = lease.last_report.task;
    lease.task.epoch = state.epoch_;
    lease.task.shard = state.ShardAt(key.position);
    lease.task.range = key.range;
    lease.task.first_batch = BatchIndex(one.first_batch());
    lease.task.last_batch = BatchIndex(one.last_batch());
    lease.task.attempt = range->second.attempt;
    state.SetLane(&lease.task, key.position);
    range->second.holders.push_back(lease.task.id);
    QueueState::Holder& holder = state.holders_[lease.owner];
    holder.deadline = state.Deadline(now);
    holder.tasks.push_back(lease.task.id);
    state.Grant(lease, 1);
    state.leases_[lease.task.id] = std::move(lease);
  }
  for (const OpenShardState& one : save.open_shards()) {
    OpenShard& shard = state.open_shards_[ShardPosition(one.position())];
    shard.rows = one.rows();
    shard.cut_short = one.cut_short();
    if (one.has_skipped()) {
      shard.skipped = Get(one.skipped());
    }
  }
  for (const int64_t shard : save.given_up()) {
    state.given_up_.emplace(shard);
  }
  for (const FailuresState& one : save.failures()) {
    std::vector<Incarnation>& owners = state.failures_[ShardId(one.shard())];
    for (const uint64_t owner : one.owners()) {
      owners.emplace_back(owner);
    }
  }
  return state;
}

void QueueCodec::Write(const QueueRecord& record, QueueRecordState* state) {
  state->set_kind(static_cast<uint32_t>(record.kind));
  state->set_owner(record.owner.value());
  // Two fields have a second use: no kind of record has both uses.
  const bool failure = record.kind == QueueRecord::Kind::kFailure;
  const bool term = record.kind == QueueRecord::Kind::kTerm;
  state->set_position(failure ? record.shard.value() : record.position.value());
  state->set_range(record.range.value());
  state->set_batch(term ? record.term.value() : record.batch.value());
  state->set_attempt(record.attempt.value());
  ToProto(record.report, state->mutable_said());
}

Result<QueueRecord> QueueCodec::Read(const QueueRecordState& state) {
  if (state.kind() < static_cast<uint32_t>(QueueRecord::Kind::kTake) ||
      state.kind() > static_cast<uint32_t>(QueueRecord::Kind::kTerm)) {
    return FailedPrecondition(fmt::format(
        "the journal has a transition of kind {}, which this program does not know", state.kind()));
  }
  QueueRecord record;
  record.kind = static_cast<QueueRecord::Kind>(state.kind());
  record.owner = Incarnation(state.owner());
  if (record.kind == QueueRecord::Kind::kFailure) {
    record.shard = ShardId(state.position());
  } else {
    record.position = ShardPosition(state.position());
  }
  record.range = RangeId(state.range());
  if (record.kind == QueueRecord::Kind::kTerm) {
    record.term = Term(state.batch());
  } else {
    record.batch = BatchIndex(state.batch());
  }
  record.attempt = Attempt(state.attempt());
  record.report = FromProto(state.said());
  RETURN_IF_ERROR(CheckReport(record.report));
  return record;
}

}  // namespace sluice::elastic
