#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/letter_case.h"
#include "models/imports/import_network.h"
#include "models/registry/python_type.h"
#include "models/registry/registry.h"
#include "parser/printer.h"
#include "planner/compile/python_models.h"
#include "planner/plan_use_internal.h"

// Plans of statements about the catalog itself (models, jobs); planning needs no lookups.
namespace sluice::planner {
namespace {

Result<std::string> LanguageOf(const parser::Name& name) {
  const std::string language = LowerAscii(name.text);
  const std::vector<std::string>& known = models::ImportLanguages();
  if (std::find(known.begin(), known.end(), language) != known.end()) {
    return language;
  }
  const std::string list = fmt::format("{}", fmt::join(known, ", "));
  return Unimplemented(fmt::format("no model type is written in '{}'", name.text))
      .At(name.span)
      .Hint(fmt::format("LANGUAGE is one of {}", list));
}

// Runs the source once, so that what is wrong with it is known now, and its attributes later.
Status DescribePythonType(const parser::CreateModelTypeStatement& statement, const Options& options,
                          plan::CreateModelTypePlan* create) {
  const Result<std::string> description = DescribePythonModel(
      {create->source(), statement.type.name, create->language() == models::kKerasInPython},
      options.python);
  if (description.ok()) {
    *create->mutable_source() = *description + "\n" + create->source();
    return models::ReadPythonType(*description).status().MovedTo(statement.type.span);
  }
  const Status wrong = description.status();
  return wrong.diagnostics().front().span.valid() && statement.verbatim
             ? wrong.Within(statement.body_span)
             : wrong.MovedTo(statement.type.span);
}

// LANGUAGE keras: JSON is an object; a function is `def`.
bool IsKerasInPython(std::string_view source) {
  const size_t begin = source.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && source[begin] != '{' &&
         source.find("def ") != std::string_view::npos;
}

constexpr std::string_view kWholeModel = ".sluice";
constexpr std::string_view kXgboostModel = ".json";
constexpr const char* kFormats =
    "'model.sluice' is a whole model of any type, for IMPORT MODEL; 'model.json' is XGBoost's "
    "format, of boosted trees";

bool EndsWith(std::string_view file, std::string_view end) {
  return file.size() > end.size() && SameIgnoringCase(file.substr(file.size() - end.size()), end);
}

plan::Place PlaceOf(const Span& span) {
  plan::Place place;
  place.set_begin(span.begin);
  place.set_end(span.end);
  return place;
}

plan::ModelReference ReferenceTo(const parser::ModelName& model) {
  plan::ModelReference reference;
  reference.set_schema(model.schema);
  reference.set_name(model.name);
  if (model.version) {
    reference.set_version(*model.version);
  }
  *reference.mutable_place() = PlaceOf(model.span);
  return reference;
}

plan::ShowPlan::What WhatOf(parser::ShowStatement::What what) {
  using What = parser::ShowStatement::What;
  switch (what) {
    case What::kModels:
      return plan::ShowPlan::MODELS;
    case What::kModel:
      return plan::ShowPlan::MODEL;
    case What::kTrain:
      return plan::ShowPlan::TRAIN;
    case What::kModelTypes:
      return plan::ShowPlan::MODEL_TYPES;
    case What::kJobs:
      return plan::ShowPlan::JOBS;
    case What::kJob:
      return plan::ShowPlan::JOB;
    case What::kCluster:
      return plan::ShowPlan::CLUSTER;
  }
  return plan::ShowPlan::MODELS;
}

}  // namespace

plan::Plan PlanShow(const parser::ShowStatement& statement) {
  plan::Plan plan;
  plan::ShowPlan& show = *plan.mutable_show();
  show.set_what(WhatOf(statement.what));
  if (statement.model) {
    *show.mutable_model() = ReferenceTo(*statement.model);
  }
  show.set_job(statement.job);
  if (statement.limit) {
    show.set_limit(*statement.limit);
  }
  show.set_all(statement.all);
  *show.mutable_place() = PlaceOf(statement.span);
  return plan;
}

plan::Plan PlanDescribe(const parser::DescribeStatement& statement) {
  plan::Plan plan;
  plan::DescribePlan& describe = *plan.mutable_describe();
  if (statement.model) {
    *describe.mutable_model() = ReferenceTo(*statement.model);
  }
  if (statement.model_type) {
    describe.set_model_type(statement.model_type->text);
    *describe.mutable_place() = PlaceOf(statement.model_type->span);
  }
  return plan;
}

Result<plan::Plan> PlanCreateModelType(const parser::CreateModelTypeStatement& statement,
                                       const Options& options) {
  if (statement.type.version) {
    return InvalidArgument("CREATE MODEL TYPE names no version")
        .At(statement.type.span)
        .Hint("OR REPLACE makes the next one by itself");
  }
  const std::string name = parser::Print(statement.type);
  if (models::FindModelType(name) != nullptr) {
    return AlreadyExists(fmt::format("'{}' is a built-in model type", name))
        .At(statement.type.span)
        .Hint("choose another name, or put it into a schema: my.Net");
  }
  plan::Plan plan;
  plan::CreateModelTypePlan& create = *plan.mutable_create_model_type();
  *create.mutable_type() = ReferenceTo(statement.type);
  create.set_or_replace(statement.or_replace);
  *create.mutable_place() = PlaceOf(statement.span);
  ASSIGN_OR_RETURN(const std::string language, LanguageOf(statement.language));
  create.set_language(language);
  if (language == "onnx") {
    const std::optional<std::string> bytes = DecodeBase64(statement.body);
    if (!bytes) {
      return InvalidArgument("an ONNX file stands between the quotes as base64, and this is none")
          .At(statement.language.span)
          .Hint("base64 net.onnx prints it; sluice model push net.onnx --name x does all of it");
    }
    create.set_source(*bytes);
  } else {
    create.set_source(statement.body);
  }
  if (language == "keras" && IsKerasInPython(create.source())) {
    create.set_language(std::string(models::kKerasInPython));
  }
  if (models::IsPython(create.language())) {
    RETURN_IF_ERROR(DescribePythonType(statement, options, &create));
    return plan;
  }
  Status wrong = models::CheckImport({language, create.source(), {}});
  if (!wrong.ok()) {
    const Span in_body = wrong.diagnostics().front().span;
    const bool placed = in_body.valid() && statement.verbatim && language != "onnx";
    return placed ? wrong.Within(statement.body_span) : wrong.MovedTo(statement.type.span);
  }
  return plan;
}

plan::Plan PlanDropModel(const parser::DropModelStatement& statement) {
  plan::Plan plan;
  plan::DropModelPlan& drop = *plan.mutable_drop_model();
  *drop.mutable_model() = ReferenceTo(statement.model);
  drop.set_if_exists(statement.if_exists);
  drop.set_type(statement.type);
  *drop.mutable_place() = PlaceOf(statement.span);
  return plan;
}

Result<plan::Plan> PlanAlterModel(const parser::AlterModelStatement& statement) {
  for (const parser::ModelName* name :
       {&statement.model, statement.rename ? &*statement.rename : nullptr}) {
    if (name != nullptr && name->version) {
      return InvalidArgument("ALTER is of a model, with all its versions")
          .At(name->span)
          .Hint(statement.rename
                    ? "leave the version out"
                    : "name the model alone; PROMOTE says which version is to be live");
    }
  }
  plan::Plan plan;
  plan::AlterModelPlan& alter = *plan.mutable_alter_model();
  *alter.mutable_model() = ReferenceTo(statement.model);
  if (statement.promote) {
    alter.set_promote(*statement.promote);
  }
  if (statement.rename) {
    *alter.mutable_rename() = ReferenceTo(*statement.rename);
    if (alter.rename().schema().empty()) {  // as with ALTER TABLE, the model stays in its schema
      alter.mutable_rename()->set_schema(statement.model.schema);
    }
  }
  *alter.mutable_place() = PlaceOf(statement.span);
  return plan;
}

Result<plan::Plan> PlanModelGrant(const parser::ModelGrantStatement& statement,
                                  const catalog::DataSource& source) {
  if (statement.model.version) {
    return InvalidArgument("a right is of a model, with all its versions")
        .At(statement.model.span)
        .Hint("leave the version out");
  }
  if (statement.type && !statement.usage) {
    return InvalidArgument("INSPECT is of models")
        .At(statement.span)
        .Hint("who has USAGE of a model type sees its source");
  }
  plan::Plan plan;
  plan::ModelGrantPlan& grant = *plan.mutable_model_grant();
  *grant.mutable_model() = ReferenceTo(statement.model);
  grant.set_revoke(statement.revoke);
  grant.set_type(statement.type);
  grant.set_usage(statement.usage);
  grant.set_inspect(statement.inspect && !statement.type);
  for (const parser::Name& role : statement.roles) {
    grant.add_roles(role.quoted ? role.text : source.Fold(role.text));
    *grant.add_role_places() = PlaceOf(role.span);
  }
  *grant.mutable_place() = PlaceOf(statement.span);
  return plan;
}

Result<plan::Plan> PlanExportModel(const parser::ExportModelStatement& statement) {
  plan::Plan plan;
  plan::ExportModelPlan& out = *plan.mutable_export_model();
  const bool whole = EndsWith(statement.file, kWholeModel);
  if (!whole && !EndsWith(statement.file, kXgboostModel)) {
    return InvalidArgument(fmt::format("the end of '{}' says no format of models", statement.file))
        .At(statement.file_span)
        .Hint(kFormats);
  }
  *out.mutable_model() = ReferenceTo(statement.model);
  out.set_file(statement.file);
  *out.mutable_file_place() = PlaceOf(statement.file_span);
  out.set_format(whole ? plan::ExportModelPlan::WHOLE : plan::ExportModelPlan::XGBOOST);
  out.set_overwrite(statement.overwrite);
  return plan;
}

Result<plan::Plan> PlanImportModel(const parser::ImportModelStatement& statement) {
  if (!EndsWith(statement.file, kWholeModel)) {
    return InvalidArgument(fmt::format("'{}' is no file that EXPORT MODEL makes to be imported",
                                       statement.file))
        .At(statement.file_span)
        .Hint(kFormats);
  }
  if (statement.into && statement.into->version) {
    return InvalidArgument("INTO names no version")
        .At(statement.into->span)
        .Hint("the imported model is the next version by itself");
  }
  plan::Plan plan;
  plan::ImportModelPlan& in = *plan.mutable_import_model();
  in.set_file(statement.file);
  *in.mutable_file_place() = PlaceOf(statement.file_span);
  if (statement.into) {
    *in.mutable_into() = ReferenceTo(*statement.into);
  }
  *in.mutable_place() = PlaceOf(statement.span);
  return plan;
}

plan::Plan PlanJob(const parser::JobStatement& statement) {
  plan::Plan plan;
  plan::JobPlan& job = *plan.mutable_job();
  using Action = parser::JobStatement::Action;
  job.set_action(statement.action == Action::kWait   ? plan::JobPlan::WAIT
                 : statement.action == Action::kDrop ? plan::JobPlan::DROP
                                                     : plan::JobPlan::CANCEL);
  job.set_job(statement.job);
  job.set_if_exists(statement.if_exists);
  *job.mutable_place() = PlaceOf(statement.span);
  return plan;
}

}  // namespace sluice::planner
