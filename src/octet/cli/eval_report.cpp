#include "octet/cli/eval_report.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/html_page.h"
#include "octet/cli/json_writer.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

constexpr const char* kForm = "octet-eval";
constexpr int kVersion = 2;  // 2: settings tell context, cache and activations too

/// "needs 1.42, has 3.81": the tokens a step that pay for drafting, and those there are.
std::string verdict(const ArmSummary& plain, const ArmSummary& arm) {
  return fmt::format(
      "needs {:.2f}, has {:.2f}", break_even(plain, arm), arm.acceptance.tokens_per_step()
  );
}

using Rows = std::vector<std::vector<std::string>>;

Rows speed_rows(const EvalReport& report) {
  Rows rows = {
      {"arm",
       "tokens/s",
       "speedup",
       "tokens a step",
       "break-even",
       "TTFT ms 50/90/99 %",
       "TPOT ms 50/90/99 %",
       "ITL ms 50/90/99 %",
       "all together, tokens/s"}};
  const auto three = [](const Quantiles& q) {
    return fmt::format("{:.2f} {:.2f} {:.2f}", q.p50, q.p90, q.p99);
  };
  const ArmSummary* plain = report.plain();
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const ArmSummary& arm = report.summaries[a];
    const bool other = plain != nullptr && plain != &arm && plain->tokens_per_second() > 0.0;
    rows.push_back(
        {report.evaluation.arms[a].settings.name,
         fmt::format("{:.1f}", arm.tokens_per_second()),
         other ? fmt::format("{:.2f}x", arm.tokens_per_second() / plain->tokens_per_second()) : "",
         fmt::format("{:.2f}", arm.acceptance.tokens_per_step()),
         other ? verdict(*plain, arm) : "",
         three(arm.first_token_ms),
         three(arm.per_token_ms),
         three(arm.between_tokens_ms),
         fmt::format("{:.1f}", arm.throughput())}
    );
  }
  return rows;
}

Rows acceptance_rows(const EvalReport& report) {
  Rows rows = {{"arm", "steps", "acceptance length", "by position"}};
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const AcceptanceStatistics& acceptance = report.summaries[a].acceptance;
    if (acceptance.drafted == 0) {
      continue;
    }
    std::string places;
    for (int k = 0; k < acceptance.rows(); ++k) {
      places += fmt::format("{}{:.2f}", k > 0 ? " " : "", acceptance.joint(k));
    }
    rows.push_back(
        {report.evaluation.arms[a].settings.name,
         fmt::format("{}", acceptance.steps),
         fmt::format("{:.3f}", acceptance.mean_acceptance_length()),
         places}
    );
  }
  return rows;
}

/// How many steps added so many tokens.
Rows histogram_rows(const EvalReport& report) {
  int most = 0;
  for (const ArmSummary& arm : report.summaries) {
    most = std::max(most, arm.acceptance.drafted > 0 ? arm.acceptance.rows() + 1 : 0);
  }
  Rows rows = {{"arm"}};
  for (int tokens = 1; tokens <= most; ++tokens) {
    rows.front().push_back(fmt::format("{}", tokens));
  }
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const AcceptanceStatistics& acceptance = report.summaries[a].acceptance;
    if (acceptance.drafted == 0) {
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(report.evaluation.arms[a].settings.name);
    for (int tokens = 1; tokens <= most; ++tokens) {
      row.push_back(fmt::format("{}", acceptance.histogram[static_cast<size_t>(tokens)]));
    }
  }
  return rows;
}

Rows group_rows(
    const EvalReport& report,
    const char* name,
    std::map<std::string, AcceptanceStatistics> ArmSummary::*groups
) {
  Rows rows = {{name}};
  std::map<std::string, std::vector<std::string>> lines;
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    if (report.summaries[a].acceptance.drafted == 0) {
      continue;
    }
    rows.front().push_back(report.evaluation.arms[a].settings.name);
    for (const auto& [group, acceptance] : report.summaries[a].*groups) {
      lines[group].push_back(fmt::format("{:.3f}", acceptance.mean_acceptance_length()));
    }
  }
  for (auto& [group, cells] : lines) {
    cells.insert(cells.begin(), group);
    rows.push_back(std::move(cells));
  }
  return rows;
}

/// What was run, with what.
std::vector<std::pair<std::string, std::string>> facts(const EvalReport& report) {
  std::vector<std::pair<std::string, std::string>> all = report.facts;
  all.insert(all.end(), report.settings.begin(), report.settings.end());
  const ArmSummary& first = report.summaries.front();
  all.emplace_back(
      "replies", fmt::format("{}, {} tokens each arm", first.replies, first.reply_tokens)
  );
  return all;
}

/// The tables that every form for people shows; those without rows are left out.
std::vector<std::pair<std::string, Rows>> sections(const EvalReport& report) {
  std::vector<std::pair<std::string, Rows>> all = {
      {"Speed", speed_rows(report)},
      {"Acceptance", acceptance_rows(report)},
      {"Steps by tokens that they added", histogram_rows(report)},
      {"Acceptance length by category", group_rows(report, "category", &ArmSummary::by_category)},
      {"Acceptance length by language", group_rows(report, "language", &ArmSummary::by_language)}};
  std::erase_if(all, [](const auto& section) { return section.second.size() < 2; });
  return all;
}

std::string text_table(const Rows& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], row[c].size());
    }
  }
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) {
      line += fmt::format(" {:<{}} ", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += fmt::format("{}\n", line);
  }
  return out;
}

int64_t failures(const EvalReport& report) {
  return report.summaries.empty() ? 0 : report.summaries.front().failed;
}

std::string notes(const EvalReport& report) {
  std::string out;
  if (report.evaluation.differing > 0) {
    out += fmt::format(
        "{} replies differ from those of {}: a fault of octet; `octet verify` shows where\n",
        report.evaluation.differing,
        report.evaluation.arms.front().settings.name
    );
  } else if (report.evaluation.arms.size() > 1) {
    out += "all arms wrote the same replies, token for token\n";
  }
  if (failures(report) > 0) {
    out += fmt::format(
        "{} replies could not be asked for; the first reason: {}\n",
        failures(report),
        first_failure(report, 0)
    );
  }
  for (const SkippedLine& line : report.skipped) {
    out += fmt::format("skipped {}: line {}: {}\n", line.path, line.line, line.why);
  }
  return out;
}

void write_quantiles(JsonWriter& json, const char* name, const Quantiles& q) {
  json.key(name).begin_object().member("count", q.count).member("mean", q.mean);
  json.member("p50", q.p50).member("p90", q.p90).member("p99", q.p99).end_object();
}

void write_acceptance(JsonWriter& json, const AcceptanceStatistics& acceptance) {
  json.begin_object().member("steps", acceptance.steps).member("tokens", acceptance.published);
  json.member("drafted", acceptance.drafted).member("accepted", acceptance.accepted);
  json.member("acceptance_length", acceptance.mean_acceptance_length());
  json.member("tokens_per_step", acceptance.tokens_per_step()).key("by_position").begin_array();
  for (int k = 0; k < acceptance.rows(); ++k) {
    json.value(acceptance.joint(k));
  }
  json.end_array().key("steps_by_tokens").begin_array();
  for (const int64_t steps : acceptance.histogram) {
    json.value(steps);
  }
  json.end_array().end_object();
}

void write_groups(
    JsonWriter& json, const char* name, const std::map<std::string, AcceptanceStatistics>& groups
) {
  json.key(name).begin_object();
  for (const auto& [group, acceptance] : groups) {
    json.key(group);
    write_acceptance(json, acceptance);
  }
  json.end_object();
}

void write_record(JsonWriter& json, const EvalReport& report, const EvalRecord& record) {
  const SuitePrompt& prompt = report.prompts[static_cast<size_t>(record.prompt)];
  json.begin_object().member("suite", prompt.suite).member("id", prompt.id);
  json.member("category", prompt.category).member("turn", record.turn);
  if (!record.error.empty()) {
    json.member("error", record.error).end_object();
    return;
  }
  json.member("finish", finish_reason_name(record.finish));
  json.member("prompt_tokens", record.prompt_tokens).member("reused_tokens", record.reused_tokens);
  json.member("reply_tokens", record.reply_tokens).member("steps", record.acceptance.steps);
  json.member("drafted", record.acceptance.drafted).member("accepted", record.acceptance.accepted);
  json.member("first_token_ms", record.first_token_ms).member("total_ms", record.total_ms);
  json.end_object();
}

void write_pairs(
    JsonWriter& json,
    const char* name,
    const std::vector<std::pair<std::string, std::string>>& pairs
) {
  json.key(name).begin_object();
  for (const auto& [key, value] : pairs) {
    json.member(key, value);
  }
  json.end_object();
}

void write_arm(JsonWriter& json, const EvalReport& report, size_t a) {
  const EvalArm& arm = report.evaluation.arms[a];
  const ArmSummary& summary = report.summaries[a];
  json.begin_object().member("name", arm.settings.name);
  json.member("draft_max", arm.settings.draft_max).member("adaptive", arm.settings.adaptive);
  json.member("replies", summary.replies).member("failed", summary.failed);
  json.member("prompt_tokens", summary.prompt_tokens);
  json.member("reply_tokens", summary.reply_tokens);
  json.member("tokens_per_second", summary.tokens_per_second());
  json.member("throughput", summary.throughput()).member("step_ms", summary.step_ms());
  if (report.plain() != nullptr && report.plain() != &summary) {
    json.member("break_even", break_even(*report.plain(), summary));
  }
  write_quantiles(json, "first_token_ms", summary.first_token_ms);
  write_quantiles(json, "per_token_ms", summary.per_token_ms);
  write_quantiles(json, "between_tokens_ms", summary.between_tokens_ms);
  json.key("acceptance");
  write_acceptance(json, summary.acceptance);
  write_groups(json, "by_category", summary.by_category);
  write_groups(json, "by_language", summary.by_language);
  json.key("records").begin_array();
  for (const EvalRecord& record : arm.records) {
    write_record(json, report, record);
  }
  json.end_array().end_object();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) {
    return text;
  }
  std::string out = "\"";
  for (const char character : text) {
    out += character == '"' ? "\"\"" : std::string(1, character);
  }
  return out + "\"";
}

/// A line a reply of every arm.
Rows record_rows(const EvalReport& report) {
  Rows rows = {
      {"arm",
       "suite",
       "id",
       "category",
       "turn",
       "finish",
       "prompt_tokens",
       "reused_tokens",
       "reply_tokens",
       "steps",
       "drafted",
       "accepted",
       "first_token_ms",
       "total_ms",
       "error"}};
  const auto integer = [](int64_t value) { return fmt::format("{}", value); };
  for (const EvalArm& arm : report.evaluation.arms) {
    for (const EvalRecord& record : arm.records) {
      const SuitePrompt& prompt = report.prompts[static_cast<size_t>(record.prompt)];
      rows.push_back(
          {arm.settings.name,
           prompt.suite,
           prompt.id,
           prompt.category,
           integer(record.turn),
           std::string(finish_reason_name(record.finish)),
           integer(record.prompt_tokens),
           integer(record.reused_tokens),
           integer(record.reply_tokens),
           integer(record.acceptance.steps),
           integer(record.acceptance.drafted),
           integer(record.acceptance.accepted),
           fmt::format("{:.3f}", record.first_token_ms),
           fmt::format("{:.3f}", record.total_ms),
           record.error}
      );
    }
  }
  return rows;
}

std::vector<Curve> position_curves(const EvalReport& report) {
  std::vector<Curve> curves;
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const AcceptanceStatistics& acceptance = report.summaries[a].acceptance;
    if (acceptance.drafted == 0) {
      continue;
    }
    Curve curve{report.evaluation.arms[a].settings.name, {}};
    for (int k = 0; k < acceptance.rows(); ++k) {
      curve.values.push_back(acceptance.joint(k));
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

/// Whose drafts tell most of the drafter: the arm that always drafts most, else the last one that
/// drafted at all; nullopt: none did.
std::optional<size_t> drafting_arm(const EvalReport& report) {
  std::optional<size_t> fixed;
  std::optional<size_t> any;
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const EvalArmSettings& arm = report.evaluation.arms[a].settings;
    if (report.summaries[a].acceptance.drafted == 0) {
      continue;
    }
    any = a;
    if (!arm.adaptive &&
        (!fixed || arm.draft_max > report.evaluation.arms[*fixed].settings.draft_max)) {
      fixed = a;
    }
  }
  return fixed ? fixed : any;
}

std::string plots(const EvalReport& report) {
  std::vector<Bar> speeds;
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    const double speed = report.summaries[a].tokens_per_second();
    speeds.push_back({report.evaluation.arms[a].settings.name, speed, fmt::format("{:.1f}", speed)}
    );
  }
  std::string out = html_bars("Tokens a second, one reply", speeds);
  out += html_plot(
      "Share of steps that accept at least so many drafts",
      "drafts, 1 and up",
      position_curves(report)
  );
  const std::optional<size_t> drafting = drafting_arm(report);
  if (!drafting) {
    return out;
  }
  const ArmSummary& arm = report.summaries[*drafting];
  const std::string& name = report.evaluation.arms[*drafting].settings.name;
  std::vector<Bar> categories;
  for (const auto& [category, acceptance] : arm.by_category) {
    const double length = acceptance.mean_acceptance_length();
    categories.push_back({category, length, fmt::format("{:.2f}", length)});
  }
  out += html_bars(fmt::format("Acceptance length by category, {}", name), categories);
  std::vector<Bar> histogram;
  for (int tokens = 1; tokens <= arm.acceptance.rows() + 1; ++tokens) {
    const int64_t steps = arm.acceptance.histogram[static_cast<size_t>(tokens)];
    histogram.push_back(
        {fmt::format("{}", tokens), static_cast<double>(steps), fmt::format("{}", steps)}
    );
  }
  return out + html_bars(fmt::format("Steps by tokens that they added, {}", name), histogram);
}

/// One arm of a result that was read back.
struct ReadArm {
  int64_t replies = 0;
  int64_t failed = 0;
  double acceptance_length = 0.0;
  double tokens_per_second = 0.0;
  double first_token_ms = 0.0;
};

struct ReadResult {
  std::map<std::string, std::string> settings;
  int64_t differing = 0;
  std::vector<std::pair<std::string, ReadArm>> arms;

  /// null: no arm of that name.
  const ReadArm* find(const std::string& name) const {
    const auto found = std::find_if(arms.begin(), arms.end(), [&](const auto& entry) {
      return entry.first == name;
    });
    return found == arms.end() ? nullptr : &found->second;
  }
};

ReadResult read_result(const std::string& path) {
  const JsonValue object = read_json_object(path);
  const std::string* form = object.find_string("form");
  const JsonObject* settings = object.find_object("settings");
  const JsonArray* arms = object.find_array("arms");
  if (form == nullptr || *form != kForm || settings == nullptr || arms == nullptr) {
    throw Error(
        ErrorKind::kMalformed, fmt::format("{}: is no result of `octet eval --json`", path)
    );
  }
  if (const int64_t version = object.find_integer("version").value_or(0); version != kVersion) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: is a result of version {}, expected {}; write it anew with this octet's `octet "
            "eval --json-file`",
            path,
            version,
            kVersion
        )
    );
  }
  ReadResult out;
  out.differing = object.find_integer("differing").value_or(0);
  for (const auto& [name, value] : *settings) {
    out.settings[name] = value.string() != nullptr ? *value.string() : std::string();
  }
  for (const JsonValue& arm : *arms) {
    const std::string* name = arm.find_string("name");
    const JsonValue* acceptance = arm.find("acceptance");
    const JsonValue* first = arm.find("first_token_ms");
    if (name == nullptr || acceptance == nullptr || first == nullptr) {
      throw Error(ErrorKind::kMalformed, fmt::format("{}: an arm lacks its figures", path));
    }
    out.arms.emplace_back(
        *name,
        ReadArm{
            arm.find_integer("replies").value_or(0),
            arm.find_integer("failed").value_or(0),
            acceptance->find_number("acceptance_length").value_or(0.0),
            arm.find_number("tokens_per_second").value_or(0.0),
            first->find_number("p50").value_or(0.0)}
    );
  }
  return out;
}

/// "greedy", or "missing" where there is no such setting.
std::string setting_of(const ReadResult& result, const std::string& name) {
  const auto found = result.settings.find(name);
  return found == result.settings.end() ? "missing" : found->second;
}

void check_comparable(const ReadResult& before, const ReadResult& after) {
  std::map<std::string, std::string> all = before.settings;
  all.insert(after.settings.begin(), after.settings.end());
  for (const auto& [name, unused] : all) {
    const std::string first = setting_of(before, name);
    const std::string second = setting_of(after, name);
    if (first != second) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "the results are not of the same requests: {} is {} in the first and {} in the "
              "second; run both with the same prompts and settings",
              name,
              first,
              second
          )
      );
    }
  }
}

/// Means over other replies are no change of the pair.
void check_same_replies(const ReadResult& before, const ReadResult& after) {
  for (const auto& [name, arm] : before.arms) {
    const ReadArm* other = after.find(name);
    if (other != nullptr && (arm.replies != other->replies || arm.failed != other->failed)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "the results are not of the same replies: {} has {} and {} that failed in the first, "
              "{} and {} in the second; leave out the prompts that fail, or give them room (-c)",
              name,
              arm.replies,
              arm.failed,
              other->replies,
              other->failed
          )
      );
    }
  }
}

/// What makes figures of a result doubtful; empty: nothing.
std::string doubts(const char* which, const ReadResult& result) {
  return result.differing == 0
             ? std::string()
             : fmt::format(
                   "{} replies of the {} differ from those of its first arm: a fault of octet, and "
                   "its arms are not of the same texts\n",
                   result.differing,
                   which
               );
}

std::string change(double before, double after) {
  return fmt::format(
      "{:.2f} -> {:.2f} ({})",
      before,
      after,
      before > 0.0 ? fmt::format("{:+.1f} %", 100.0 * (after / before - 1.0)) : "new"
  );
}

}  // namespace

const ArmSummary* EvalReport::plain() const {
  for (size_t a = 0; a < summaries.size(); ++a) {
    if (evaluation.arms[a].settings.draft_max == 0) {
      return &summaries[a];
    }
  }
  return nullptr;
}

std::string first_failure(const EvalReport& report, size_t arm) {
  for (const EvalRecord& record : report.evaluation.arms[arm].records) {
    if (!record.error.empty()) {
      const SuitePrompt& prompt = report.prompts[static_cast<size_t>(record.prompt)];
      return fmt::format("{} got no reply: {}", place_of(prompt, record.prompt), record.error);
    }
  }
  return {};
}

std::string eval_table(const EvalReport& report) {
  std::string out;
  for (const auto& [name, value] : facts(report)) {
    out += fmt::format("{:<14} {}\n", name, value);
  }
  for (const auto& [title, rows] : sections(report)) {
    out += fmt::format("\n{}\n{}", title, text_table(rows));
  }
  const std::string said = notes(report);
  return said.empty() ? out : fmt::format("{}\n{}", out, said);
}

std::string eval_json(const EvalReport& report) {
  JsonWriter json;
  json.begin_object().member("form", kForm).member("version", kVersion);
  write_pairs(json, "facts", report.facts);
  write_pairs(json, "settings", report.settings);
  json.member("differing", report.evaluation.differing).key("arms").begin_array();
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    write_arm(json, report, a);
  }
  json.end_array().key("skipped").begin_array();
  for (const SkippedLine& line : report.skipped) {
    json.begin_object().member("path", line.path).member("line", line.line);
    json.member("why", line.why).end_object();
  }
  json.end_array().end_object();
  return json.text();
}

std::string eval_csv(const EvalReport& report) {
  std::string out;
  for (const std::vector<std::string>& row : record_rows(report)) {
    for (size_t c = 0; c < row.size(); ++c) {
      out += fmt::format("{}{}", c > 0 ? "," : "", csv_field(row[c]));
    }
    out += '\n';
  }
  return out;
}

std::string eval_html(const EvalReport& report) {
  Rows run = {{"of this run", ""}};
  for (const auto& [name, value] : facts(report)) {
    run.push_back({name, value});
  }
  std::string body = html_table(run) + plots(report);
  for (const auto& [title, rows] : sections(report)) {
    body += fmt::format("<h2>{}</h2>\n{}", html_escaped(title), html_table(rows));
  }
  body += fmt::format(
      "<details><summary>Every reply</summary><div "
      "style=\"overflow-x:auto\">\n{}</div></details>\n",
      html_table(record_rows(report))
  );
  body += fmt::format("<pre>{}</pre>\n", html_escaped(notes(report)));
  return html_page("octet eval", "octet eval", body);
}

std::string eval_diff(const std::string& old_path, const std::string& new_path) {
  const ReadResult before = read_result(old_path);
  const ReadResult after = read_result(new_path);
  check_comparable(before, after);
  check_same_replies(before, after);
  Rows rows = {{"arm", "acceptance length", "tokens/s", "TTFT ms, median"}};
  for (const auto& [name, arm] : before.arms) {
    const ReadArm* other = after.find(name);
    if (other == nullptr) {
      rows.push_back({name, "only in the first"});
      continue;
    }
    rows.push_back(
        {name,
         change(arm.acceptance_length, other->acceptance_length),
         change(arm.tokens_per_second, other->tokens_per_second),
         change(arm.first_token_ms, other->first_token_ms)}
    );
  }
  for (const auto& [name, unused] : after.arms) {
    if (before.find(name) == nullptr) {
      rows.push_back({name, "only in the second"});
    }
  }
  return text_table(rows) + doubts("first", before) + doubts("second", after);
}

}  // namespace octet::cli
