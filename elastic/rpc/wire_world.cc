#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {

void ToProto(const TaskReport& report, ReportRequest* proto) {
  proto->set_task(report.task);
  proto->set_done(report.done);
  proto->set_end_of_shard(report.end_of_shard);
  proto->set_next_batch(report.next_batch);
  proto->set_batches(report.batches);
  proto->set_shard_rows(report.shard_rows);
  proto->set_checksum(report.checksum);
  proto->set_rows(report.rows);
  proto->set_rows_read(report.rows_read);
  proto->set_rows_retried(report.rows_retried);
  proto->set_loss(report.loss);
  proto->set_weight(report.weight);
  proto->set_metrics(report.metrics);
  proto->mutable_versions()->Add(report.versions.begin(), report.versions.end());
  proto->mutable_checksums()->Add(report.checksums.begin(), report.checksums.end());
}

TaskReport FromProto(const ReportRequest& proto) {
  TaskReport report;
  report.task = proto.task();
  report.done = proto.done();
  report.end_of_shard = proto.end_of_shard();
  report.next_batch = proto.next_batch();
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
  return report;
}

void ToProto(const RoundPosition& position, RoundPositionProto* proto) {
  proto->set_epoch(position.epoch);
  proto->set_round(position.round);
  proto->set_step(position.step);
  for (const TaskReport& lane : position.lanes) {
    ToProto(lane, proto->add_lanes());
  }
}

RoundPosition FromProto(const RoundPositionProto& proto) {
  RoundPosition position;
  position.epoch = proto.epoch();
  position.round = proto.round();
  position.step = proto.step();
  for (const ReportRequest& lane : proto.lanes()) {
    position.lanes.push_back(FromProto(lane));
  }
  return position;
}

void ToProto(const WorldAnswer& answer, MeetReply* proto) {
  proto->set_work(static_cast<int>(answer.work));
  proto->set_world(answer.world.id);
  proto->set_generation(answer.world.generation);
  proto->set_closed(answer.world.closed);
  proto->set_beginning(answer.world.beginning);
  proto->set_source(static_cast<uint32_t>(answer.world.source));
  proto->set_rank(static_cast<uint32_t>(answer.rank));
  proto->set_best(answer.best);
  for (const Rendezvous::Member& member : answer.world.members) {
    MeetReply::Member* to = proto->add_members();
    to->set_incarnation(member.incarnation);
    to->set_address(member.address);
    to->set_closed(member.closed);
  }
  for (const Task& lane : answer.lanes) {
    ToProto(lane, proto->add_lanes());
  }
}

WorldAnswer FromProto(const MeetReply& proto) {
  WorldAnswer answer;
  answer.work = static_cast<WorldAnswer::Work>(proto.work());
  answer.world.id = proto.world();
  answer.world.generation = proto.generation();
  answer.world.closed = proto.closed();
  answer.world.beginning = proto.beginning();
  answer.world.source = proto.source();
  answer.rank = proto.rank();
  answer.best = proto.best();
  for (const MeetReply::Member& member : proto.members()) {
    answer.world.members.push_back({member.incarnation(), member.address(), member.closed()});
  }
  for (const TaskProto& lane : proto.lanes()) {
    answer.lanes.push_back(FromProto(lane));
  }
  return answer;
}

}  // namespace sluice::elastic
