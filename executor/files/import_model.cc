#include "executor/files/import_model.h"

#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <memory>
#include <string>
#include <utility>

#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/files/model_file.h"
#include "executor/files/model_folder.h"
#include "executor/jobs/begin_job.h"
#include "executor/place_internal.h"
#include "executor/result_rows.h"
#include "executor/scoring/scorer.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

// The file, its weights, and the model that is made of them to check them.
constexpr int64_t kCopiesOfImport = 4;

// What the file says of the training, and where the model comes from.
std::string LineageOf(const catalog::ModelVersion& version) {
  rapidjson::Document told;
  told.Parse<rapidjson::kParseIterativeFlag>(version.lineage.data(), version.lineage.size());
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  if (!told.HasParseError() && told.IsObject()) {
    for (const auto& member : std::as_const(told).GetObject()) {
      const std::string_view name(member.name.GetString(), member.name.GetStringLength());
      if (name != "imported_from" && (member.value.IsInt64() || member.value.IsString())) {
        writer.Key(member.name.GetString(), member.name.GetStringLength());
        member.value.Accept(writer);
      }
    }
  }
  writer.Key("imported_from");
  writer.String(fmt::format("{}:{}", version.name, version.version).c_str());
  writer.EndObject();
  return buffer.GetString();
}

// The model of the file, which turns out to work.
Result<ModelFile> ReadModel(const plan::ImportModelPlan& plan, Context& context) {
  ASSIGN_OR_RETURN(
      const std::string bytes,
      ModelFolder(context.export_root).Read(plan.file(), context.memory_bytes() / kCopiesOfImport));
  ASSIGN_OR_RETURN(ModelFile file, ReadModelFile(bytes));
  const auto stored = planner::ReadStoredPlan(file.version.plan);
  if (!stored.ok()) {
    return InvalidArgument("the file is damaged").Detail(std::string(stored.status().message()));
  }
  models::ModelSpec spec = stored->model();
  spec.mutable_features()->mutable_label()->clear_class_weights();
  const auto scorer = Scorer::Make(spec, file.weights);
  if (!scorer.ok()) {
    return scorer.status().Because("the file's model does not work");
  }
  plan::TrainPlan own = *stored;
  own.set_into_schema(plan.into().schema());
  own.set_into_name(plan.has_into() ? plan.into().name() : file.version.name);
  file.version.lineage = LineageOf(file.version);
  file.version.plan = own.SerializeAsString();
  file.version.schema = own.into_schema();
  file.version.name = own.into_name();
  file.version.type = spec.type();
  return file;
}

}  // namespace

Schema ImportedColumns() {
  return Schema{{{"model", DataType::kText, "text"},
                 {"version", DataType::kInt64, "bigint"},
                 {"job", DataType::kInt64, "bigint"},
                 {"type", DataType::kText, "text"},
                 {"bytes", DataType::kInt64, "bigint"}}};
}

Status ExecuteImportModel(const plan::ImportModelPlan& plan, Context& context, ResultSink& sink) {
  Status outside = context.source.CheckNoTransaction();
  if (!outside.ok()) {
    return std::move(outside).At(SpanOf(plan.place()));
  }
  Result<ModelFile> file = Guarded("reading a model", [&] { return ReadModel(plan, context); });
  if (!file.ok()) {
    return file.status().MovedTo(SpanOf(plan.file_place()));
  }
  catalog::ModelVersion& version = file->version;
  const std::string name =
      version.schema.empty() ? version.name : version.schema + "." + version.name;
  catalog::ModelStore& models = context.catalog.models();
  const Status allowed = models.CheckMayPut(version.schema, version.name);
  if (!allowed.ok()) {
    return allowed.MovedTo(SpanOf(plan.has_into() ? plan.into().place() : plan.place()));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<JobRecord> job, BeginJob(context, "import", name));
  version.job = job->id();
  const catalog::EndOfJob end = [&job](const catalog::ModelVersion& /*stored*/) {
    return job->Success("");
  };
  const Result<catalog::ModelVersion> stored = models.PutAndEnd(version, file->weights, false, end);
  if (stored.ok()) {
    job->HasSucceeded("");
  }
  RETURN_IF_ERROR(job->Finish(stored.status()));
  ResultRows rows(ImportedColumns());
  rows.Add({name, stored->version, stored->job, stored->type, stored->weights_bytes});
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done("IMPORT MODEL");
  return OkStatus();
}

}  // namespace sluice::executor
