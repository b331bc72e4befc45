/* SPDX-License-Identifier: Apache-2.0
 *
 * The control loop of any robot, for foreign calls and for controllers: eom/control_loop.hpp, which says what it does.
 * Robots, settings and vectors are named as there. A function that returns a text says by it what is wrong, and returns
 * null if nothing is. Times are ns of one clock, quantities in SI units. No function is to be called while another one
 * runs, but for loops of their own, and for those whose name has "post": one other thread may call them. */
#ifndef EOM_LOOP_H
#define EOM_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include "loop_parameters.hpp"
#include "robot_table.hpp"
typedef eom::RobotTable eom_robot;
typedef eom::Reason eom_reason;
typedef eom::LoopState eom_state;
extern "C" {
#else
typedef struct eom_robot eom_robot;
typedef struct eom_reason eom_reason;
typedef struct eom_state eom_state;
#endif

/* What follows is seen from outside of the library, whose templates are not: another one may have its own. */
#pragma GCC visibility push(default)

typedef struct eom_loop eom_loop;
typedef void (*eom_kernel)(const double *const *inputs, double *const *outputs);

/* Digest of the sources, and that of the sources that the library was built of: with others, it is not to be used. */
#define EOM_LOOP_DIGEST "@loop_digest@"
const char *eom_loop_digest(void);

/* --- A robot, from its numbers and its code: eom/robot_table.hpp -------------------------------------------------- */

eom_robot *eom_robot_make(size_t joints, size_t motors, size_t tools);
void eom_robot_free(eom_robot *robot);

/* Numbers of the table, such as "lower.q"; the motors' joints, and the flags as 0 or 1. They are copied. */
const char *eom_robot_set(eom_robot *robot, const char *name, const double *numbers, size_t count);

/* Names of joints, or else of motors, that texts say. They are copied. */
void eom_robot_call(eom_robot *robot, int joints, const char *const *names, size_t count);

/* Adds a kernel to a function, such as "feedforward": it runs after those that were added before. */
const char *eom_robot_add(eom_robot *robot, const char *function, eom_kernel kernel, const char *const *inputs,
                          size_t input_count, const char *const *outputs, size_t output_count);

/* --- Its loop, which is to be freed before the robot -------------------------------------------------------------- */

/* Null for more joints, motors or tools than the library was compiled for. */
eom_loop *eom_loop_make(const eom_robot *robot);
void eom_loop_free(eom_loop *loop);

/* Sizes of a loop and of its given setpoint, bytes. */
size_t eom_loop_size(const eom_loop *loop);
size_t eom_setpoint_size(const eom_loop *loop);

/* A setting of eom::LoopSettings, an enumerator by its number; or gains of eom::LoopParameters, one number for all motors
 * or joints, or one for each. In effect from the next eom_loop_configure() on, which leaves all as they were where one is
 * beyond its range. */
const char *eom_loop_set(eom_loop *loop, const char *name, const double *numbers, size_t count);
const char *eom_loop_configure(eom_loop *loop);

/* Memory of a vector, which remains where it is: of the setpoint "given" and of that to be "posted", to be written; of the
 * "setpoint" followed, of its "command", of what is "sent", of the command that "exceeded" limits last, before it was
 * clipped or refused, of what is "released", and of what is "measured", in the units of the drives; of the sample that
 * was "observed" last, and of what is "external", "tau" and "motor_effort". Null if there is none. */
double *eom_loop_vector(eom_loop *loop, const char *whose, const char *name);

/* What is measured from now on, and to be written before each restart and cycle. */
void eom_loop_measure(eom_loop *loop, int links, int motors);

/* Takes what was measured at a time, ns, of links 1 + motors 2 + joint efforts 4 + motor efforts 8, from the vectors "sensed",
 * in the units of the drives. Cycles have it while it is recent, for 0.1 s, and eom_loop_measure() has nothing. Returns the
 * eom::Sample plus eight times the joint; one that is refused leaves that before. */
int eom_loop_sense(eom_loop *loop, int64_t time, int sensors);

/* Begins anew at a time, INT64_MAX for an unknown one, from what is measured and finite. */
const char *eom_loop_restart(eom_loop *loop, int64_t now);

/* Has what begins at a time, or "release" as the end of all, begin where the arm is: see ControlLoop::locate(). Before what is
 * planned, aimed, stopped or lost at that time. Returns whether the arm does not follow its commands. */
int eom_loop_locate(eom_loop *loop, int64_t now, int ends);

/* Writes the given setpoint: at rest at zero, on a base that moves or not; returns its memory. */
void *eom_loop_rest(eom_loop *loop, int on_base);

/* Takes the given setpoint, which has a stamp or 0, as the reference of the next cycle; or as that of a controller in
 * front, which is ahead by a time, s. */
void eom_loop_refer(eom_loop *loop, int64_t stamp);
void eom_loop_follow(eom_loop *loop, int64_t stamp, double ahead);

/* Takes position and velocity of the given setpoint as the target of a controller in front, in the next cycle: NaN where the
 * target of a joint stays. */
void eom_loop_pursue(eom_loop *loop);

/* What a tool carries from the next setpoint on: inertial parameters P of a setpoint. */
const char *eom_loop_carry(eom_loop *loop, size_t tool, const double *parameters, double blend_time);

/* Limits of the motion to targets: for each joint the numbers of eom::MotionLimits. Not while a target leads. */
const char *eom_loop_limit(eom_loop *loop, const double *limits, size_t joints);

/* Takes the target that was posted last for the cycle of a time, which does so itself, too: returns why it was refused, an
 * eom::Refusal, or 0. */
int eom_loop_aim(eom_loop *loop, int64_t now);

/* Plans what was sent, or waits and is to begin, for commands of a period, s, and plays it, or has it wait for its start. Returns
 * 0 for that; why it was refused, an eom::Refusal; or -1 if there is nothing to plan. */
int eom_loop_plan(eom_loop *loop, int64_t now, double period);

/* Has what waits begin later by a time, ns, for which the clock of its start stood still, or less than none. */
void eom_loop_delay(eom_loop *loop, int64_t time);

/* "halt" what is played and what waits, with the last command; "drop" what waits where nothing is played, and what leads goes on;
 * "stop" what is played, and bring the arm to rest, whatever the settings say; "lose": begin the response to a loss of setpoints, by the settings; "pause" motions
 * that are played, on their paths, and "resume" them, from any thread; "release": write the vectors of the last command, for
 * when the loop is switched off; "take" the setpoint that was posted last as the reference, if there is a new one. Returns
 * null for these. "resume" also follows references again after contact. */
const char *eom_loop_act(eom_loop *loop, const char *action);

/* A cycle; returns why its reference was refused, an eom::Refusal; 0 if it was not, or less: -1 if its command exceeds
 * limits, -2 if it is not plausible, -3 for both. Trajectories are to be planned before; eom_loop_run() does so itself, and
 * ends them where the clock goes back. */
int eom_loop_update(eom_loop *loop, int64_t now, double period);
int eom_loop_run(eom_loop *loop, int64_t now, double period);

/* Numbers of a vector: where they are, and how many. */
typedef struct {
    double *numbers;
    size_t count;
} eom_vector;

/* Answers setpoints, one after the other, at times, until one is refused: reads a row of numbers into vectors, and writes
 * a row of others after the cycle, and what it returns. Returns how many have been answered, or refused. */
size_t eom_loop_answer(eom_loop *loop, size_t count, const int64_t *stamps, const int64_t *times, const eom_vector *read,
                       size_t read_count, const double *given, const eom_vector *written, size_t written_count,
                       double *results, int *codes);

/* Sets a member of eom::ExternalEffort, which starts again: "bandwidth", "order", "source" of each joint; "restart" sets
 * nothing. Or of eom::ContactWatch "speeds", "errors", "noise", with which eom_loop_sense() observes, and contact has the
 * reaction of on_contact. */
const char *eom_observer_set(eom_loop *loop, const char *name, const double *numbers, size_t count);

/* Takes samples of sensors, of links 1 + motors 2 + torque 4 + motor efforts 8, with payloads 16: reads a row of numbers into
 * vectors "sensed", and writes the external efforts of joints, the residuals of motors, positions and velocities of joints,
 * and the eom::Sample plus eight times the joint. */
void eom_observer_update(eom_loop *loop, size_t count, const double *times, int sensors, const eom_vector *read,
                         size_t read_count, const double *given, double *results, int *codes);

/* A sentence, until the next call: why the last reference was refused, "refusal"; what was not plausible last, "finding"; which
 * limit a payload or target that was refused would exceed, "overload"; or what has slowed down the motion to a target, "slowed";
 * empty for nothing. */
const char *eom_loop_text(eom_loop *loop, const char *what);

/* Writes one of the limits that the last command beyond limits exceeds, the worst first, before it was clipped or refused, and
 * returns the name of its joint or motor, its quantity, its unit and a remark, with 0x1f between them; null where there are not as
 * many. */
const char *eom_loop_violation(eom_loop *loop, size_t number, eom_reason *reason);

/* Writes what happened until now: an eom::LoopState, of a size in bytes. */
size_t eom_state_size(void);
void eom_loop_state(const eom_loop *loop, eom_state *state);

/* How often an eom::Event has come in an eom::Phase: see eom/state_machine.hpp. */
size_t eom_loop_visits(const eom_loop *loop, int event, int phase);

/* --- From another thread ------------------------------------------------------------------------------------------ */

/* Writes the setpoint to be posted, as eom_loop_rest(), and posts it with a stamp or 0, for the action "take". */
void eom_loop_post_rest(eom_loop *loop, int on_base);
void eom_loop_post(eom_loop *loop, int64_t stamp);

/* Posts the pace of motions that are played, 0 to 1.5 of theirs, on their paths. */
const char *eom_loop_post_speed(eom_loop *loop, double factor);

/* Posts the mode, an eom::Mode. */
const char *eom_loop_post_mode(eom_loop *loop, int mode);

/* Posts a trajectory to be planned: its time 0, ns, 0 for when it is taken; knots, s; and positions to snaps, each knots x joints;
 * without knots it stops. Joints whose positions are NaN stay where they are commanded at its start. */
const char *eom_loop_post_spline(eom_loop *loop, int64_t origin, const double *knots, size_t count, const double *states);

/* Posts a target, positions, and velocities and accelerations, NULL for zero, of all joints; NaN where the target of a joint stays. Or a chunk:
 * positions, knots x joints, NaN for joints that stay, at times, s, after an origin, 0 for when it is taken. */
const char *eom_loop_post_target(eom_loop *loop, int64_t origin, const double *times, size_t knots, const double *positions,
                                 const double *velocities, const double *accelerations);

/* Posts what a tool carries from the next setpoint on: mass, centre of mass, inertia about it as in eom::Body. */
const char *eom_loop_post_payload(eom_loop *loop, size_t tool, const double *body, double blend_time);

/* --- A simulated robot, without a loop: eom/plant.hpp ------------------------------------------------------------- */

typedef struct eom_plant eom_plant;

/* Null where the robot has no code of a plant. Gains of drives whose position is commanded, one of each motor, SI units. */
eom_plant *eom_plant_make(const eom_robot *robot, const double *kp, const double *kd);
void eom_plant_free(eom_plant *plant);

/* Memory of a vector: of the "state" "q", "qd", "theta", "thetad" and "friction_state"; and in the units of the drives
 * "drive_position", "drive_velocity" and "drive_effort" that are "commanded", NaN for none, and "reported". Null if there is
 * none. */
double *eom_plant_vector(eom_plant *plant, const char *whose, const char *name);

/* Puts the arm at rest at "q", and commands the efforts that hold it there. */
void eom_plant_rest(eom_plant *plant);

/* Advances by a time in steps of at most a length, s; returns whether the motion is finite. */
int eom_plant_advance(eom_plant *plant, double time, double longest_step);

/* --- Online trajectories, without a robot: eom/online_trajectory.hpp ---------------------------------------------- */

typedef struct eom_motion eom_motion;

/* Makes one at rest at zero, and writes by how much averages delay each joint, s. Limits of a joint are the numbers of
 * eom::MotionLimits. */
const char *eom_motion_make(eom_motion **motion, const double *limits, size_t joints, double *delays);
void eom_motion_free(eom_motion *motion);

/* Continues from states, 5 x joints, and writes the excess of each joint over limits; without a place for it, rests at the
 * positions of states. */
void eom_motion_begin(eom_motion *motion, const double *states, double *excess);

/* Takes a target or a chunk as eom_loop_post_target(), with times on the clock of eom_motion_step(); or, without positions,
 * comes to rest. */
const char *eom_motion_aim(eom_motion *motion, const double *times, size_t knots, const double *positions,
                           const double *velocities, const double *accelerations);

/* Runs cycles, and writes the states at the end of each, cycles x 5 x joints; returns the time of the cycles so far, s. */
double eom_motion_step(eom_motion *motion, size_t cycles, double *states);

/* Whether all joints rest at their targets. */
int eom_motion_arrived(const eom_motion *motion);

#ifdef __cplusplus
}
#endif

#pragma GCC visibility pop

#endif
