#include "octet/speculation/block_policy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

// The acceptance of a block's first place before anything was seen (high, so that a new sequence
// begins by drafting), and how many observations that weighs; likewise what a place is expected to
// do, which is what the place before it does. For a draft with a confidence, that is what is
// expected of it.
constexpr double kPlaceAcceptance = 0.75;
constexpr double kPlaceWeight = 4.0;
constexpr double kConfidenceWeight = 4.0;
// A drafter that was not seen yet is right about as often as this power of how sure it says to be:
// it knows its rivals for a place, not whether the text is one that it was trained for.
constexpr double kConfidencePower = 1.5;
// How many observations of its own what is known of other texts weighs.
constexpr double kOthersWeight = 4.0;
// Share of the past that one more observation of a class keeps, and that so many steps keep of all
// classes: what was cut off for long is tried again, because its record fades into the expectation.
constexpr double kClassMemory = 0.995;
constexpr int kForgetSteps = 16;
constexpr double kForgetMemory = 0.953;

// What is believed of drafting when it begins (DraftBalance). Before it is given up so many
// standard errors of its tokens are granted: few when it began with the text, whose time so far is
// short, more when it began after a look and blocks that paid.
constexpr double kTrustSteps = 4.0;
constexpr double kErrorsAtFirst = 0.2;
constexpr double kErrorsAfterLook = 1.0;
// Drafting is given up when it is slower by this: the balance scatters, and coming back takes time.
constexpr double kPatience = 1.02;
// It is taken up again without a look when costs of today make the same balance so much faster for
// so many steps: what disturbs the machine while nothing is drafted raises the cost of plain steps
// alone, because they are what it meets.
constexpr double kReturn = 1.05;
constexpr int kStepsToReturn = 16;
// Every plain step pays for asking, so only each of so many does.
constexpr int kStepsToAsk = 8;
// Where a plain step is so much dearer than when drafting was given up, plain steps come often at
// first, should that pass later.
constexpr double kSuspiciousRise = 1.25;
constexpr int64_t kPlainDistanceInSuspicion = 4;
constexpr int kPlainStepsInSuspicion = 24;

// While drafting does not pay, looks at it may cost this share of plain decoding.
constexpr double kProbeShare = 0.003;
// The first look after drafting was given up comes so much sooner, each of the next ones by half
// of that: a judgement made in haste is corrected early.
constexpr int64_t kFirstHurry = 8;
constexpr int64_t kLeastProbeDistance = 16;
constexpr int64_t kMostProbeDistance = 2048;
// After a look that would have beaten plain decoding, so many blocks have to beat it together
// before drafting begins for good; the look does not count, because it was picked for its luck.
constexpr int kBlocksInARow = 2;
// Fewer blocks than this before drafting is given up again were a false alarm, and what was found
// before stands: looks do not hurry.
constexpr double kFalseAlarmBlocks = 32.0;
// So many positions before a look its drafter is fed again.
// They are injected with the look, in one go, and so paid for as a part of it.
constexpr int64_t kContextForLook = 32;
// While it pays, a plain step now and then keeps its cost known: seldom where drafting is clearly
// faster, because such a step forgoes the gain.
constexpr int64_t kPlainDistance = 512;
constexpr int64_t kPlainDistanceInDoubt = 64;
constexpr double kDoubtfulSpeedup = 1.25;
// A plain step's cost older than this is measured again before drafting is given up over it.
constexpr int64_t kFreshPasses = 24;
// While drafting, what blocks cost is measured again when it is older than this: a length that an
// outlier made look dear would never be tried again.
constexpr int64_t kRefreshPasses = 150;
// So many blocks in a row that are cut show that full ones do not come, where replies are short.
constexpr int kShortBlocks = 8;

constexpr std::array<float, 12> kConfidenceEdges = {
    0.05F, 0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 0.95F, 0.98F};

int confidence_class(float confidence) {
  return static_cast<int>(
      std::upper_bound(kConfidenceEdges.begin(), kConfidenceEdges.end(), confidence) -
      kConfidenceEdges.begin()
  );
}

}  // namespace

BlockPolicy::BlockPolicy(const StepCosts& costs, int max_drafts)
    : costs_(costs), max_drafts_(std::min(max_drafts, kMaxDrafts)), until_plain_(kPlainDistance) {}

BlockPolicy BlockPolicy::for_another_text() const {
  BlockPolicy other = *this;
  other.abandon_look();
  other.end_run();  // looks in a row are of one text
  other.check_cost_ = false;
  return other;
}

void BlockPolicy::Record::add(bool right) {
  trials = trials * kClassMemory + 1.0;
  hits = hits * kClassMemory + (right ? 1.0 : 0.0);
}

/// That the draft of a row is right when those before it are.
double BlockPolicy::probability(int row, std::span<const float> confidence) const {
  if (!confidence.empty()) {
    const float sure = confidence[static_cast<size_t>(row)];
    const Record& seen = by_confidence_[static_cast<size_t>(confidence_class(sure))];
    const double expected = std::pow(static_cast<double>(sure), kConfidencePower);
    return (seen.hits + kConfidenceWeight * expected) / (seen.trials + kConfidenceWeight);
  }
  // A place is expected to do as well as the one before it, until it was seen: blocks that were
  // kept short then grow again where the text is easy.
  double expected = kPlaceAcceptance;
  for (int place = 0; place <= row; ++place) {
    const Record& seen = by_place_[static_cast<size_t>(place)];
    expected = (seen.hits + kPlaceWeight * expected) / (seen.trials + kPlaceWeight);
  }
  return expected;
}

double BlockPolicy::conditional(int k, double expected) const {
  const Record& seen = by_place_[static_cast<size_t>(k)];
  return (seen.hits + kOthersWeight * expected) / (seen.trials + kOthersWeight);
}

void BlockPolicy::learn(int row, std::span<const int> classes, bool right) {
  const auto at = static_cast<size_t>(row);
  by_place_[at].add(right);
  if (at < classes.size()) {
    by_confidence_[static_cast<size_t>(classes[at])].add(right);
  }
}

/// The longest block whose cost can be learnt.
int BlockPolicy::longest_block() const {
  return short_blocks_ < kShortBlocks ? max_drafts_ : longest_short_;
}

/// The cost curve is learnt from use. The length to try next before anything can be judged; -1 when
/// enough is known.
int BlockPolicy::unknown_cost() const {
  const int longest = longest_block();
  if (longest > 0 && (!costs_.knows_draft() || !costs_.sure_of_forward(longest + 1))) {
    return longest;
  }
  return costs_.sure_of_forward(1) ? -1 : 0;
}

/// The length to try for the sake of its cost where drafting pays; -1: none.
int BlockPolicy::cost_to_refresh() const {
  const int longest = longest_block();
  const int middle = longest / 2;
  if (middle >= 1 &&
      (!costs_.sure_of_forward(middle + 1) || costs_.forward_age(middle + 1) > kRefreshPasses)) {
    return middle;
  }
  return longest >= 1 && costs_.forward_age(longest + 1) > kRefreshPasses ? longest : -1;
}

double BlockPolicy::ms_per_token() const {
  return balance_.ms_per_token(costs_, max_drafts_, {kTrustSteps});
}

int64_t BlockPolicy::probe_distance() const {
  const double plain = std::max(costs_.forward_ms(1), 1e-9);
  const auto distance = static_cast<int64_t>(costs_.look_ms() / (kProbeShare * plain));
  const int64_t hurry = std::max<int64_t>(1, kFirstHurry >> std::min(looks_, 8));
  return std::clamp(distance / hurry, kLeastProbeDistance, kMostProbeDistance);
}

int64_t BlockPolicy::features_wanted() const {
  if (drafting_) {
    return std::numeric_limits<int64_t>::max();
  }
  const bool soon =
      looking_ || run_ > 0 || !look_.drafts.empty() || until_probe_ <= kContextForLook;
  return soon ? kContextForLook : 0;
}

int BlockPolicy::next_drafts() {
  if (++steps_ % kForgetSteps == 0) {
    forget();
  }
  forced_ = -1;
  looking_ = false;
  if (max_drafts_ == 0) {
    return 0;
  }
  if (const int unknown = unknown_cost(); unknown >= 0) {
    forced_ = unknown;
    return unknown == 0 ? 0 : max_drafts_;
  }
  if (!drafting_ && steps_ % kStepsToAsk == 0) {
    begin_if_cheaper();
  }
  return drafting_ ? next_of_drafting() : next_of_plain();
}

/// Costs have turned out to be others. What was seen has to say so by itself, without trust.
void BlockPolicy::begin_if_cheaper() {
  const double ms = balance_.ms_per_token(costs_, max_drafts_, {});
  const bool cheaper = kReturn * ms < costs_.forward_ms(1);
  cheaper_steps_ = cheaper ? cheaper_steps_ + kStepsToAsk : 0;
  if (cheaper_steps_ >= kStepsToReturn) {
    begin();
  }
}

int BlockPolicy::next_of_plain() {
  if (std::exchange(check_cost_, false)) {
    forced_ = max_drafts_;
    return max_drafts_;
  }
  if (run_ == 0 && --until_probe_ > 0) {
    return 0;
  }
  if (run_ == 0) {
    ++looks_;
    until_probe_ = probe_distance();
  }
  looking_ = true;
  return max_drafts_;
}

int BlockPolicy::next_of_drafting() {
  const double plain_ms = costs_.forward_ms(1);
  const double errors = after_look_ ? kErrorsAfterLook : kErrorsAtFirst;
  if (balance_.ms_per_token(costs_, max_drafts_, {kTrustSteps, errors}) > kPatience * plain_ms) {
    if (costs_.forward_age(1) <= kFreshPasses) {
      drafting_ = false;
      plain_ms_given_up_ = plain_ms;
      looks_ = balance_.blocks() < kFalseAlarmBlocks ? looks_ : 0;
      until_probe_ = probe_distance();
    }
    return 0;
  }
  if (const int length = cost_to_refresh(); length >= 0) {
    forced_ = length;
    return max_drafts_;
  }
  const bool doubtful = ms_per_token() * kDoubtfulSpeedup > plain_ms;
  if (--until_plain_ <= 0 || (doubtful && costs_.forward_age(1) > kPlainDistanceInDoubt)) {
    suspicion_ = std::max(0, suspicion_ - 1);
    until_plain_ = suspicion_ > 0 ? kPlainDistanceInSuspicion : kPlainDistance;
    return 0;
  }
  return max_drafts_;
}

bool BlockPolicy::suspicious() const {
  return costs_.forward_ms(1) > kSuspiciousRise * plain_ms_given_up_;
}

void BlockPolicy::begin() {
  drafting_ = true;
  end_run();
  cheaper_steps_ = 0;
  suspicion_ = suspicious() ? kPlainStepsInSuspicion : 0;
  until_plain_ = suspicion_ > 0 ? kPlainDistanceInSuspicion : until_plain_;
}

/// The length whose rows gain most over their cost, when time is worth what it presently yields:
/// then tokens over time is greatest in the long run.
int BlockPolicy::best_length(int drafted, std::span<const float> confidence) const {
  const double worth_ms = std::min(ms_per_token(), costs_.forward_ms(1));
  double joint = 1.0;
  double tokens = 1.0;
  double best_gain = tokens * worth_ms - costs_.forward_ms(1);
  int best = 0;
  for (int length = 1; length <= drafted; ++length) {
    joint *= probability(length - 1, confidence);
    tokens += joint;
    const double gain = tokens * worth_ms - costs_.forward_ms(length + 1);
    if (gain > best_gain) {
      best_gain = gain;
      best = length;
    }
  }
  return best;
}

int BlockPolicy::keep(std::span<const TokenId> drafts, std::span<const float> confidence) {
  const auto drafted = static_cast<int>(std::ssize(drafts));
  OCTET_CHECK(drafted <= kMaxDrafts);
  OCTET_CHECK(confidence.empty() || std::ssize(confidence) >= drafted);
  const bool cut = drafted < max_drafts_;
  short_blocks_ = cut ? short_blocks_ + 1 : 0;
  longest_short_ = cut ? std::max(longest_short_, drafted) : 0;
  classes_.clear();
  confidence_.assign(confidence.begin(), confidence.end());
  for (int row = 0; row < drafted && !confidence.empty(); ++row) {
    classes_.push_back(confidence_class(confidence[static_cast<size_t>(row)]));
  }
  int kept = best_length(drafted, confidence);
  if (looking_ && run_ == 0 && (kept == 0 || confidence.empty())) {
    look_ = {
        std::vector<TokenId>(drafts.begin(), drafts.end()),
        std::exchange(classes_, {}),
        confidence.empty() ? drafted : kept,
        0};
    confidence_.clear();
    looking_ = false;  // the text will judge it
    return 0;
  }
  if (forced_ >= 0 && forced_ <= drafted) {  // a shorter block would not tell what is asked
    kept = forced_;
  }
  if (kept == 0) {
    settle(0, 0);
  }
  return kept;
}

void BlockPolicy::observe(int drafted, int accepted, int judged) {
  OCTET_CHECK(accepted <= drafted && judged <= drafted);
  for (int row = 0; row < judged; ++row) {
    learn(row, classes_, row < accepted);
  }
  if (drafted > 0) {
    settle(drafted, accepted);
  }
}

/// A block's fate is known: of its first `verified` drafts so many were accepted.
void BlockPolicy::settle(int verified, int accepted) {
  balance_.add(accepted + 1.0, verified + 1, tokens_by_length(verified, accepted));
  if (!drafting_ && looking_) {
    follow(accepted + 1.0, verified + 1);
  }
  looking_ = false;
  classes_.clear();
  confidence_.clear();
}

/// What this step's block would have given in every length, where its first `right` drafts of
/// `known` were right: beyond them, unless one was wrong, what is expected.
TokensByLength BlockPolicy::tokens_by_length(int known, int right) const {
  TokensByLength tokens{};
  tokens[0] = 1.0;
  double joint = right == known ? 1.0 : 0.0;
  for (int length = 1; length <= max_drafts_; ++length) {
    const int row = length - 1;
    double gain = 1.0;
    if (length > right) {
      const bool drafted = confidence_.empty() || row < std::ssize(confidence_);
      joint *= drafted ? probability(row, confidence_) : 0.0;
      gain = joint;
    }
    tokens[static_cast<size_t>(length)] = tokens[static_cast<size_t>(row)] + gain;
  }
  return tokens;
}

void BlockPolicy::published(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (look_.drafts.empty()) {
      return;
    }
    const bool right = token == look_.drafts[look_.met];
    learn(static_cast<int>(look_.met), look_.classes, right);
    look_.met += right ? 1 : 0;
    if (!right || look_.met == look_.drafts.size()) {
      judge_look(static_cast<int>(look_.met));
      look_ = Look();
    }
  }
}

/// `right`: the drafts of the look that the text went on with.
void BlockPolicy::judge_look(int right) {
  const double tokens = std::min(right, look_.kept) + 1.0;
  const auto drafted = static_cast<int>(std::ssize(look_.drafts));
  balance_.add(tokens, look_.kept + 1, tokens_by_length(drafted, right));
  follow(tokens, look_.kept + 1);
  // Good drafts, and only a cost of long ago speaks against them: see what it is now.
  const double plain_ms = costs_.forward_ms(1);
  const bool old = costs_.forward_age(max_drafts_ + 1) > StepCosts::kStalePasses;
  if (run_ == 0 && !drafting_ && old && (right + 1.0) * plain_ms > costs_.draft_ms() + plain_ms) {
    check_cost_ = true;
  }
}

/// A look, or a block that followed one, gave so many tokens. Where that beats plain decoding the
/// next step drafts too: easy places come together.
void BlockPolicy::follow(double tokens, int rows) {
  const double plain_ms = costs_.forward_ms(1);
  const double ms = costs_.block_ms(rows);
  if (run_ > 0) {
    run_tokens_ += tokens;
    run_ms_ += ms;
  }
  if (run_ > 0 ? run_tokens_ * plain_ms > run_ms_ : tokens * plain_ms > ms) {
    if (run_++ < kBlocksInARow) {
      return;
    }
    begin();
    after_look_ = true;
    balance_ = DraftBalance();
  }
  end_run();
}

void BlockPolicy::end_run() {
  run_ = 0;
  run_tokens_ = 0.0;
  run_ms_ = 0.0;
}

void BlockPolicy::forget() {
  for (const std::span<Record> records :
       {std::span<Record>(by_confidence_), std::span<Record>(by_place_)}) {
    for (Record& seen : records) {
      seen.hits *= kForgetMemory;
      seen.trials *= kForgetMemory;
    }
  }
}

}  // namespace octet
