// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/module/simhca/parameters: what the device is, and what befalls it.
 */
#include <linux/module.h>

#include "simhca.h"

char *sim_wire = "";
module_param_named(wire, sim_wire, charp, 0444);
MODULE_PARM_DESC(wire, "net device that is the cable; may appear later");

char *sim_name = "mlx5_%d";
module_param_named(name, sim_name, charp, 0444);
MODULE_PARM_DESC(name, "name of the RDMA device, %d for the next free number");

unsigned long long sim_guid = 0x0002c90300000001ULL;

static int get_guid(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "0x%016llx\n", sim_guid);
}

static const struct kernel_param_ops guid_ops = {
	.set = param_set_ullong,
	.get = get_guid,
};
module_param_cb(guid, &guid_ops, &sim_guid, 0444);
MODULE_PARM_DESC(guid, "node and port GUID; every node its own");

bool sim_enhanced;
module_param_named(enhanced, sim_enhanced, bool, 0444);
MODULE_PARM_DESC(enhanced, "IPoIB without connected mode, as mlx5 has it");

unsigned int sim_mad_drop;
module_param_named(mad_drop, sim_mad_drop, uint, 0644);
MODULE_PARM_DESC(mad_drop,
	"MADs left unanswered, a sum: 1 SMA, 2 PMA, 4 all of QP 1, 8 SMInfo");

/* Tell the running device that something about its link is different. */
static void link_changed(bool renegotiate)
{
	mutex_lock(&sim_knob_lock);
	if (sim_the_hca && renegotiate)
		sim_link_bounce(sim_the_hca);
	else if (sim_the_hca)
		sim_hello_now(sim_the_hca);
	mutex_unlock(&sim_knob_lock);
}

bool sim_cable = true;

static int set_cable(const char *val, const struct kernel_param *kp)
{
	int ret = param_set_bool(val, kp);

	if (!ret)
		link_changed(false);
	return ret;
}

static const struct kernel_param_ops cable_ops = {
	.set = set_cable,
	.get = param_get_bool,
};
module_param_cb(cable, &cable_ops, &sim_cable, 0644);
MODULE_PARM_DESC(cable, "0 pulls the cable, 1 plugs it in");

u8 sim_width = IB_WIDTH_4X;

static int set_width(const char *val, const struct kernel_param *kp)
{
	if (sysfs_streq(val, "1") || sysfs_streq(val, "1x"))
		sim_width = IB_WIDTH_1X;
	else if (sysfs_streq(val, "4") || sysfs_streq(val, "4x"))
		sim_width = IB_WIDTH_4X;
	else
		return -EINVAL;
	link_changed(true);
	return 0;
}

static int get_width(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", ib_width_enum_to_int(sim_width));
}

static const struct kernel_param_ops width_ops = {
	.set = set_width,
	.get = get_width,
};
module_param_cb(width, &width_ops, NULL, 0644);
MODULE_PARM_DESC(width, "widest that the link comes up: 1 or 4");

u16 sim_speed = IB_SPEED_HDR;

static const struct {
	const char *name;
	u16 speed;
} speeds[] = {
	{ "SDR", IB_SPEED_SDR }, { "DDR", IB_SPEED_DDR },
	{ "QDR", IB_SPEED_QDR }, { "FDR", IB_SPEED_FDR },
	{ "EDR", IB_SPEED_EDR }, { "HDR", IB_SPEED_HDR },
	{ "NDR", IB_SPEED_NDR },
};

static int set_speed(const char *val, const struct kernel_param *kp)
{
	size_t len = strcspn(val, "\n");
	int i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		if (len == 3 && !strncasecmp(val, speeds[i].name, 3)) {
			sim_speed = speeds[i].speed;
			link_changed(true);
			return 0;
		}
	}
	return -EINVAL;
}

static int get_speed(char *buf, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].speed == sim_speed)
			return sysfs_emit(buf, "%s\n", speeds[i].name);
	return -EINVAL;
}

static const struct kernel_param_ops speed_ops = {
	.set = set_speed,
	.get = get_speed,
};
module_param_cb(speed, &speed_ops, NULL, 0644);
MODULE_PARM_DESC(speed, "fastest that the link comes up: SDR to NDR");

/* "NAME=VALUE" sets an error counter, "NAME+=VALUE" raises it. */
static int set_errors(const char *val, const struct kernel_param *kp)
{
	const char *eq = strchr(val, '=');
	bool add = eq && eq > val && eq[-1] == '+';
	size_t len = eq ? eq - val - add : 0;
	int i, ret = -ENODEV;
	u64 n;

	if (!eq || kstrtou64(eq + 1, 0, &n))
		return -EINVAL;
	for (i = 0; i < SIM_NERRS; i++)
		if (strlen(sim_err_names[i]) == len &&
		    !strncmp(sim_err_names[i], val, len))
			break;
	if (i == SIM_NERRS)
		return -EINVAL;
	mutex_lock(&sim_knob_lock);
	if (sim_the_hca) {
		if (add)
			atomic64_add(n, &sim_the_hca->cnt.err[i]);
		else
			atomic64_set(&sim_the_hca->cnt.err[i], n);
		ret = 0;
	}
	mutex_unlock(&sim_knob_lock);
	return ret;
}

static int get_errors(char *buf, const struct kernel_param *kp)
{
	int i, len = 0;

	mutex_lock(&sim_knob_lock);
	for (i = 0; sim_the_hca && i < SIM_NERRS; i++)
		len += sysfs_emit_at(buf, len, "%s=%lld\n", sim_err_names[i],
			(long long)atomic64_read(&sim_the_hca->cnt.err[i]));
	mutex_unlock(&sim_knob_lock);
	return len;
}

static const struct kernel_param_ops errors_ops = {
	.set = set_errors,
	.get = get_errors,
};
module_param_cb(errors, &errors_ops, NULL, 0644);
MODULE_PARM_DESC(errors, "error counters: NAME=VALUE sets, NAME+=VALUE adds");
