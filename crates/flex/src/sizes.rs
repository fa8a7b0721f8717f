//! The VM sizes that bringup offers, and the allocatable resources of each.

/// A VM size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// The name of the size in Azure.
    pub name: &'static str,
    /// The quota family of the size.
    pub family: &'static str,
    /// The number of vCPUs.
    pub cpus: u32,
    /// Memory in GiB.
    pub memory: u32,
    /// The number of GPUs.
    pub gpus: u32,
    /// The list price of an hour in dollars. Used only to order sizes.
    pub price: f64,
}

/// All sizes.
pub const SIZES: [Size; 5] = [
    Size {
        name: "Standard_D8s_v5",
        family: "standardDSv5Family",
        cpus: 8,
        memory: 32,
        gpus: 0,
        price: 0.384,
    },
    Size {
        name: "Standard_NC24ads_A100_v4",
        family: "StandardNCADSA100v4Family",
        cpus: 24,
        memory: 220,
        gpus: 1,
        price: 3.673,
    },
    Size {
        name: "Standard_NC40ads_H100_v5",
        family: "StandardNCadsH100v5Family",
        cpus: 40,
        memory: 320,
        gpus: 1,
        price: 6.98,
    },
    Size {
        name: "Standard_ND96amsr_A100_v4",
        family: "standardNDAMSv4_A100Family",
        cpus: 96,
        memory: 1900,
        gpus: 8,
        price: 32.77,
    },
    Size {
        name: "Standard_ND96isr_H200_v5",
        family: "standardNDISRH200V5Family",
        cpus: 96,
        memory: 1900,
        gpus: 8,
        price: 84.8,
    },
];

/// The size with this name.
pub fn find(name: &str) -> Option<&'static Size> {
    SIZES.iter().find(|size| size.name.eq_ignore_ascii_case(name))
}

/// The memory that must stay free before kubelet evicts pods, in MiB.
pub const EVICTION: u64 = 750;

impl Size {
    /// The CPU reserved for the system, in thousandths: 6 % of the first core, 4 % of the second, 2 % of the
    /// next two, 1 % of the rest.
    pub fn reserved_cpu(&self) -> u64 {
        let cpus = u64::from(self.cpus);
        let part = |from: u64, to: u64, per_cpu: u64| cpus.min(to).saturating_sub(from) * per_cpu;
        part(0, 1, 60) + part(1, 2, 40) + part(2, 4, 20) + part(4, u64::MAX, 10)
    }

    /// The memory reserved for the system, in MiB: 25 % of the first 4 GiB, 20 % of the next
    /// 4, 10 % of the next 8, 6 % of the next 112, 2 % of the rest.
    pub fn reserved_memory(&self) -> u64 {
        let memory = u64::from(self.memory) * 1024;
        let part = |from: u64, to: u64, percent: u64| {
            memory.min(to.saturating_mul(1024)).saturating_sub(from * 1024) * percent
        };
        let rest = u64::MAX / 1024;
        let hundredths = part(0, 4, 25)
            + part(4, 8, 20)
            + part(8, 16, 10)
            + part(16, 128, 6)
            + part(128, rest, 2);
        hundredths / 100
    }

    /// The CPU allocatable to pods, in thousandths.
    pub fn allocatable_cpu(&self) -> u64 {
        u64::from(self.cpus) * 1000 - self.reserved_cpu()
    }

    /// The memory allocatable to pods, in MiB.
    pub fn allocatable_memory(&self) -> u64 {
        u64::from(self.memory) * 1024 - self.reserved_memory() - EVICTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_45_reserved_resources_are_those_of_aks() {
        let rows = [
            ("Standard_ND96isr_H200_v5", 1060, 45834),
            ("Standard_ND96amsr_A100_v4", 1060, 45834),
            ("Standard_NC40ads_H100_v5", 500, 13475),
            ("Standard_NC24ads_A100_v4", 340, 11427),
            ("Standard_D8s_v5", 180, 3645),
        ];
        for (name, cpu, memory) in rows {
            let size = find(name).unwrap();
            assert_eq!((size.reserved_cpu(), size.reserved_memory()), (cpu, memory), "{name}");
            assert!(size.allocatable_memory() < u64::from(size.memory) * 1024);
        }
    }
}
