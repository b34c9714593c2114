#include "elastic/master/journal_writer.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "elastic/master/journal.pb.h"
#include "elastic/queue/queue_codec_internal.h"

namespace sluice::elastic {
namespace {

// The whole state of a job of a billion rows takes some megabytes.
constexpr size_t kMaxEntryBytes = size_t{256} << 20;

void Put(const Placement& placement, PlacementSave* save) {
  save->set_version(placement.map.version.value());
  for (const auto& [server, address] : placement.map.servers) {
    save->add_servers(server.value());
    save->add_addresses(address);
  }
  for (ServerId server : placement.map.primary) {
    save->add_primary(server.value());
  }
  for (ServerId server : placement.map.backup) {
    save->add_backup(server.value());
  }
  save->set_next_server(placement.next.value());
  save->set_wanted(placement.wanted);
  for (ServerId server : placement.servers) {
    save->add_started(server.value());
  }
}

Result<Placement> Get(const PlacementSave& save) {
  Placement placement;
  placement.map.version = MapVersion(save.version());
  if (save.servers_size() != save.addresses_size()) {
    return Internal("the journal's placement has servers without an address");
  }
  for (int i = 0; i < save.servers_size(); ++i) {
    if (!placement.map.servers.emplace(ServerId(save.servers(i)), save.addresses(i)).second) {
      return Internal(fmt::format("the journal's placement has server {} twice", save.servers(i)));
    }
  }
  placement.map.primary = std::vector<ServerId>(save.primary().begin(), save.primary().end());
  placement.map.backup = std::vector<ServerId>(save.backup().begin(), save.backup().end());
  RETURN_IF_ERROR(placement.map.Check());
  placement.next = ServerId(save.next_server());
  placement.wanted = save.wanted();
  placement.servers = std::set<ServerId>(save.started().begin(), save.started().end());
  return placement;
}

}  // namespace

void JournalWriter::SetPlacement(const Placement& placement) {
  placement_changed_ = placement_changed_ || placement != placement_;
  placement_ = placement;
}

Result<std::string> JournalWriter::Write(const std::vector<QueueRecord>& transitions,
                                         const TaskQueue& queue, const MasterSave& state,
                                         bool* anew) {
  std::string bytes = state.SerializeAsString();
  if (transitions.empty() && bytes == written_ && !placement_changed_ &&
      remembered_written_ == remembered_.size()) {
    return std::string();
  }
  JournalEntry entry;
  transitions_ += static_cast<int64_t>(transitions.size());
  const bool everything = written_.empty() || transitions_ > kMaxTransitions;
  if (anew != nullptr) {
    *anew = everything;
  }
  if (everything) {
    transitions_ = 0;
    QueueCodec::Write(queue.state(), entry.mutable_everything());
    written_.clear();
    remembered_written_ = 0;
  } else {
    for (const QueueRecord& transition : transitions) {
      QueueCodec::Write(transition, entry.add_transitions());
    }
  }
  if (bytes != written_) {
    *entry.mutable_state() = state;
    written_ = std::move(bytes);
  }
  if (std::exchange(placement_changed_, false) || everything) {
    Put(placement_, entry.mutable_placement());
  }
  for (; remembered_written_ < remembered_.size(); ++remembered_written_) {
    entry.add_remembered(remembered_[remembered_written_]);
  }
  const size_t size = entry.ByteSizeLong();
  if (size > kMaxEntryBytes) {
    return ResourceExhausted(fmt::format(
        "an entry of {} bytes in the job's journal; {} are allowed", size, kMaxEntryBytes));
  }
  return entry.SerializeAsString();
}

Result<bool> JournalWriter::Replay(const QueueOptions& options,
                                   const std::vector<std::string>& entries, TimePoint now,
                                   TaskQueue* queue, MasterSave* state) {
  JournalEntry entry;  // one, which keeps its memory
  bool has_state = false;
  for (const std::string& bytes : entries) {
    if (!entry.ParseFromString(bytes)) {
      return Status(Code::kInternal, "an entry of the journal cannot be read");
    }
    if (entry.has_everything()) {
      ASSIGN_OR_RETURN(QueueState whole, QueueCodec::Read(options, entry.everything(), now));
      *queue = TaskQueue(std::move(whole));
      remembered_.clear();
    }
    remembered_.insert(remembered_.end(), entry.remembered().begin(), entry.remembered().end());
    for (const QueueRecordState& transition : entry.transitions()) {
      ASSIGN_OR_RETURN(const QueueRecord record, QueueCodec::Read(transition));
      RETURN_IF_ERROR(queue->Replay(record, now));
    }
    if (entry.has_state()) {
      state->Swap(entry.mutable_state());
      has_state = true;
    }
    if (entry.has_placement()) {
      ASSIGN_OR_RETURN(placement_, Get(entry.placement()));
    }
  }
  return has_state;
}

}  // namespace sluice::elastic
